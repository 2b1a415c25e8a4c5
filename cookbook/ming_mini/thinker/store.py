"""Pictures and clips on the training device, found by number."""

from collections.abc import Sequence

import numpy as np
import torch
from torch import Tensor

from cookbook.ming_mini.thinker.shards import Shard

Size = tuple[int, int]


class Growing:
    """A tensor that rows are added to; its memory doubles when it is full."""

    def __init__(self, device: torch.device) -> None:
        self._device, self._rows, self.length = device, torch.empty(0, device=device), 0

    @property
    def rows(self) -> Tensor:
        """All rows so far."""
        return self._rows[: self.length]

    def add(self, rows: np.ndarray) -> int:
        """Append rows; returns the number of the first."""
        first, end = self.length, self.length + len(rows)
        new = torch.from_numpy(rows)
        if end > len(self._rows):
            room = (max(end, 2 * len(self._rows)), *new.shape[1:])
            larger = torch.empty(room, dtype=new.dtype, device=self._device)
            if first:
                larger[:first] = self._rows[:first]
            self._rows = larger
        self._rows[first:end] = new.to(self._device)
        self.length = end
        return first


class PictureStore:
    """Pictures of one size: `pixels` uint8 [n, height, width, 3], `marks` int8 [n, tokens, 4]."""

    def __init__(self, device: torch.device) -> None:
        self.pixels, self.marks = Growing(device), Growing(device)

    def add(self, pixels: Sequence[np.ndarray], marks: Sequence[np.ndarray]) -> int:
        """Append pictures; returns the number of the first."""
        self.marks.add(np.stack(marks))
        return self.pixels.add(np.stack(pixels))


class ClipStore:
    """Clips: log-mels in a row and transcripts in a row, with where each starts."""

    def __init__(self, device: torch.device) -> None:
        self._device = device
        self.mel, self.letters = Growing(device), Growing(device)
        self.frames: list[tuple[int, int]] = []
        self.spelled: list[tuple[int, int]] = []

    def add(self, shard: Shard) -> int:
        """Append the clips of a shard; returns the number of the first."""
        first = len(self.frames)
        for rows, sizes, spans in (
            (self.mel.add(shard.mel), shard.frames, self.frames),
            (self.letters.add(shard.letters), shard.spelled, self.spelled),
        ):
            for size in sizes.tolist():
                spans.append((rows, size))
                rows += size
        return first

    def mels(self, numbers: np.ndarray) -> tuple[Tensor, Tensor]:
        """Padded log-mels [n, longest, bins] of clips, and their lengths [n]."""
        return _gather(self.mel.rows, [self.frames[number] for number in numbers], self._device)

    def transcripts(self, numbers: np.ndarray) -> tuple[Tensor, Tensor]:
        """Padded letters [n, longest] of clips, and their lengths [n]."""
        spans = [self.spelled[number] for number in numbers]
        letters, lengths = _gather(self.letters.rows, spans, self._device)
        return letters.long(), lengths


def _gather(
    rows: Tensor, spans: list[tuple[int, int]], device: torch.device
) -> tuple[Tensor, Tensor]:
    starts, lengths = torch.tensor(spans).T.to(device)
    index = starts[:, None] + torch.arange(max(size for _, size in spans), device=device)
    return rows[index.clamp(max=len(rows) - 1)], lengths
