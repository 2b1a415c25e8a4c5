"""Three-dimensional positions of a prompt: rows (t, h, w), as in the released model.

Text advances all three rows together. A visual block of T x H x W tokens (after the 2x2 merge)
is symmetric around the diagonal: its centre has the position of the time row, so h and w may be
smaller than those of earlier text, even negative. Audio tokens count as text.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

import numpy as np

# Distance between frames of one block on the time row. The reference passes no seconds per grid,
# which fixes it.
FRAME_STEP = 2

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
        """Return the number of placeholder tokens."""
        return self.frames * self.rows * self.columns


def compute_positions(length: int, blocks: Sequence[VisualBlock]) -> tuple[np.ndarray, int]:
    """Compute the positions of a prompt of `length` tokens with its visual blocks in order.

    Returns:
        Positions, int64 [3, length], and the RoPE delta: the position of the next token, in all
        rows, is the number of tokens so far plus this delta.
    """
    segments: list[np.ndarray] = []
    done, base = 0, 0
    for block in blocks:
        before = block.start - done
        segments.append(_text_positions(base, before))
        segments.append(_visual_positions(base + before, block))
        # The next text follows the block's last time step, not its overall maximum.
        base = int(segments[-1][0].max()) + 1
        done = block.start + block.tokens
    segments.append(_text_positions(base, length - done))
    table = np.concatenate(segments, axis=1)
    return table, int(table[0].max()) + 1 - length


def find_visual_blocks(
    ids: np.ndarray,
    image_token: int,
    frame_token: int,
    images: Iterable[Grid],
    videos: Iterable[Grid],
) -> list[VisualBlock]:
    """Find the visual blocks of a prompt.

    `images` and `videos` are patch grids (t, h, w), each in the order of the prompt. A video has
    one block for each of its t frames. The grids tell where adjacent blocks begin.
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


def _text_positions(first: int, count: int) -> np.ndarray:
    return np.broadcast_to(np.arange(first, first + count, dtype=np.int64), (3, count))


def _visual_positions(first: int, block: VisualBlock) -> np.ndarray:
    time, row, column = np.indices((block.frames, block.rows, block.columns), dtype=np.int64)
    time = time * FRAME_STEP + first
    height = time + row - (block.rows - 1) // 2
    width = time + column - (block.columns - 1) // 2
    return np.stack([time, height, width]).reshape(3, -1)
