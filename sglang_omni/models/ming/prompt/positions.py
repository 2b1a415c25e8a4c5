"""3-D positions of a prompt: rows (t, h, w), the rule of the released model.

Text advances all three rows together. A visual block of T x H x W tokens (after the 2x2 merge)
sits symmetrically around the diagonal: its centre has the position of the time row, so h and w
may lie below earlier text, even below zero. Audio tokens are ordinary text.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

import numpy as np

# Distance between frames of one block on the time row. The reference passes seconds per grid as
# None, which fixes the scale.
TIME_SCALE = 2

Grid = tuple[int, int, int]


@dataclass(frozen=True)
class VisualBlock:
    """A run of placeholder tokens: its first index and its merged grid (frames, rows, columns)."""

    start: int
    frames: int
    rows: int
    columns: int

    @property
    def tokens(self) -> int:
        """Number of placeholder tokens."""
        return self.frames * self.rows * self.columns


def positions(length: int, blocks: Sequence[VisualBlock]) -> tuple[np.ndarray, int]:
    """Positions of a prompt of `length` tokens with its visual blocks in order.

    Returns int64 [3, length] and the rope delta: the next decode position on all rows is
    (tokens so far) + delta.
    """
    segments: list[np.ndarray] = []
    done, base = 0, 0
    for block in blocks:
        before = block.start - done
        segments.append(_text(base, before))
        segments.append(_visual(base + before, block))
        # The next text follows the block's last time step, not its overall maximum.
        base = int(segments[-1][0].max()) + 1
        done = block.start + block.tokens
    segments.append(_text(base, length - done))
    table = np.concatenate(segments, axis=1)
    return table, int(table[0].max()) + 1 - length


def blocks_of(
    ids: np.ndarray,
    image_token: int,
    frame_token: int,
    images: Iterable[Grid],
    videos: Iterable[Grid],
) -> list[VisualBlock]:
    """Find the visual blocks of a prompt.

    `images` and `videos` are patch grids (t, h, w) in prompt order, each kind in its own list; a
    video gives one block for each of its t frames. Adjacent blocks are told apart by their sizes.
    """
    frames = ((1, height, width) for time, height, width in videos for _ in range(time))
    grids = {image_token: iter(images), frame_token: iter(frames)}
    visual = np.flatnonzero((ids == image_token) | (ids == frame_token))
    blocks, taken = [], 0
    while taken < len(visual):
        start = int(visual[taken])
        time, height, width = next(grids[int(ids[start])])
        blocks.append(VisualBlock(start, time, height // 2, width // 2))
        taken += blocks[-1].tokens
    return blocks


def _text(first: int, count: int) -> np.ndarray:
    return np.broadcast_to(np.arange(first, first + count, dtype=np.int64), (3, count))


def _visual(first: int, block: VisualBlock) -> np.ndarray:
    time, row, column = np.indices((block.frames, block.rows, block.columns), dtype=np.int64)
    time = time * TIME_SCALE + first
    height = time + row - (block.rows - 1) // 2
    width = time + column - (block.columns - 1) // 2
    return np.stack([time, height, width]).reshape(3, -1)
