"""Pictures and clips on the training device, by number."""

from collections.abc import Sequence

import numpy as np
import torch
from torch import Tensor

from cookbook.ming_mini.thinker.shards import Shard

Size = tuple[int, ...]
"""The height and width of a picture; the frames, height and width of a film."""
FRAME_STEP = 64
LARGE_BYTES = 2 << 30
"""What is larger grows by way of the host."""


class GrowingTensor:
    """A tensor to which rows are added; its memory becomes half as large again when it is full."""

    def __init__(self, device: torch.device) -> None:
        self._device, self._rows, self.length = device, torch.empty(0, device=device), 0

    @property
    def rows(self) -> Tensor:
        """Return all rows so far."""
        return self._rows[: self.length]

    def add(self, rows: np.ndarray) -> int:
        """Append rows. Returns the number of the first."""
        first, end = self.length, self.length + len(rows)
        new = torch.from_numpy(rows)
        if end > len(self._rows):
            self._enlarge((max(end, len(self._rows) * 3 // 2), *new.shape[1:]), new.dtype)
        self._rows[first:end] = new.to(self._device)
        self.length = end
        return first

    def _enlarge(self, room: Size, dtype: torch.dtype) -> None:
        kept = self.rows
        if kept.nbytes > LARGE_BYTES:
            # The device might not have room for both.
            kept = kept.cpu()
            self._rows = kept
        larger = torch.empty(room, dtype=dtype, device=self._device)
        if self.length:
            larger[: self.length] = kept
        self._rows = larger


class PictureStore:
    """Pictures of one size: `pixels` uint8 [n, height, width, 3], `marks` int8 [n, tokens, 4]."""

    def __init__(self, device: torch.device) -> None:
        self.pixels, self.marks = GrowingTensor(device), GrowingTensor(device)

    def add(self, pixels: Sequence[np.ndarray], marks: Sequence[np.ndarray]) -> int:
        """Append pictures. Returns the number of the first."""
        self.marks.add(np.stack(marks))
        return self.pixels.add(np.stack(pixels))


class FilmStore:
    """Films of one size: `pixels` uint8 [n, frames, height, width, 3]."""

    def __init__(self, device: torch.device) -> None:
        self.pixels = GrowingTensor(device)

    def add(self, pixels: Sequence[np.ndarray]) -> int:
        """Append films. Returns the number of the first."""
        return self.pixels.add(np.stack(pixels))


class ClipStore:
    """Clips: log-mels in a row and transcripts in a row.

    `frames` and `spelled` [clips, 2] have the start and the length of each, on the host.
    """

    def __init__(self, device: torch.device) -> None:
        self._device, host = device, torch.device("cpu")
        self.mel, self.letters = GrowingTensor(device), GrowingTensor(device)
        self.frames, self.spelled = GrowingTensor(host), GrowingTensor(host)

    def add(self, shard: Shard) -> int:
        """Append the clips of a shard. Returns the number of the first."""
        first = self.frames.length
        for start, sizes, spans in (
            (self.mel.add(shard.mel), shard.frames, self.frames),
            (self.letters.add(shard.letters), shard.spelled, self.spelled),
        ):
            ends = start + np.cumsum(sizes, dtype=np.int64)
            spans.add(np.stack((ends - sizes, sizes), axis=1))
        return first

    def lengths(self, numbers: np.ndarray) -> np.ndarray:
        """Return the frames [n] of clips."""
        return self.frames.rows.numpy()[numbers, 1]

    def mels(self, numbers: np.ndarray) -> tuple[Tensor, Tensor]:
        """Return padded log-mels [n, frames, bins] of clips, and their lengths [n]."""
        spans = self.frames.rows.numpy()[numbers]
        return _gather(self.mel.rows, spans, padded(spans[:, 1]), self._device)

    def transcripts(self, numbers: np.ndarray) -> tuple[Tensor, np.ndarray]:
        """Return padded letters [n, longest] of clips, and their lengths [n]."""
        spans = self.spelled.rows.numpy()[numbers]
        letters, _ = _gather(self.letters.rows, spans, int(spans[:, 1].max()), self._device)
        return letters.long(), spans[:, 1]


def padded(lengths: np.ndarray) -> int:
    """Return the frames to which clips of these lengths are padded.

    There are few such values, which kernels prefer.
    """
    return -(-int(lengths.max()) // FRAME_STEP) * FRAME_STEP


def to_device(array: np.ndarray, device: torch.device) -> Tensor:
    """Copy the array to a device without waiting for the device."""
    tensor = torch.from_numpy(array)
    if device.type == "cuda":
        tensor = tensor.pin_memory()
    return tensor.to(device, non_blocking=True)


def _gather(
    rows: Tensor, spans: np.ndarray, longest: int, device: torch.device
) -> tuple[Tensor, Tensor]:
    starts, lengths = to_device(np.ascontiguousarray(spans.T), device)
    index = (starts[:, None] + torch.arange(longest, device=device)).clamp(max=len(rows) - 1)
    found = rows.index_select(0, index.flatten())
    return found.unflatten(0, index.shape), lengths
