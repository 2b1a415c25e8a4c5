"""Rotary tables of the transformer's three axes: caption position or frame, row and column."""

from collections.abc import Sequence
from dataclasses import dataclass

import torch
from torch import Tensor

from sglang_omni.caching.lru_cache import LruCache

MULTIPLE = 32
"""Image tokens, and caption rows, are padded to a multiple of this."""
MAX_TABLES = 16


@dataclass(frozen=True)
class Rope:
    """Cosines and sines, float32 [positions, head width / 2]."""

    cos: Tensor
    sin: Tensor


@dataclass(frozen=True)
class LatentGrid:
    """Image tokens: frames (two with a reference image), rows and columns."""

    frames: int
    height: int
    width: int

    @property
    def num_tokens(self) -> int:
        """Return the number of tokens before padding."""
        return self.frames * self.height * self.width


@dataclass(frozen=True)
class RopeTables:
    """Tables of the image tokens, and of image tokens and caption."""

    image: Rope
    sequence: Rope


def pad_length(length: int) -> int:
    """Return the length after padding."""
    return -(-length // MULTIPLE) * MULTIPLE


def caption_positions(length: int) -> Tensor:
    """Return positions [length, 3] of a padded caption."""
    positions = torch.zeros(length, 3, dtype=torch.int64)
    positions[:, 0] = 1 + torch.arange(length)
    return positions


def image_positions(grid: LatentGrid, caption_length: int) -> Tensor:
    """Return positions [padded tokens, 3]: after the caption on the first axis, padding at 0."""
    axes = (torch.arange(grid.frames) + caption_length + 1, torch.arange(grid.height))
    positions = torch.zeros(pad_length(grid.num_tokens), 3, dtype=torch.int64)
    mesh = torch.meshgrid(*axes, torch.arange(grid.width), indexing="ij")
    positions[: grid.num_tokens] = torch.stack(mesh, dim=-1).flatten(0, 2)
    return positions


class RopeCache:
    """Computes tables once per size."""

    def __init__(self, axes_dims: Sequence[int], theta: float, device: torch.device) -> None:
        self._frequencies = [
            1.0 / theta ** (torch.arange(0, dim, 2, dtype=torch.float64) / dim) for dim in axes_dims
        ]
        self._device = device
        self._tables: LruCache[tuple[LatentGrid, int], RopeTables] = LruCache(MAX_TABLES)

    def compute(self, positions: Tensor) -> Rope:
        """Return the tables of positions [positions, 3]. Angles are computed in float64."""
        columns = zip(positions.t().double(), self._frequencies, strict=True)
        angles = torch.cat([torch.outer(x, f) for x, f in columns], dim=-1).float()
        return Rope(angles.cos().to(self._device), angles.sin().to(self._device))

    def get(self, grid: LatentGrid, caption_length: int) -> RopeTables:
        """Return the tables of an image with a caption of this padded length."""
        tables = self._tables.get((grid, caption_length))
        if tables is None:
            image = image_positions(grid, caption_length)
            sequence = torch.cat((image, caption_positions(caption_length)))
            tables = RopeTables(self.compute(image), self.compute(sequence))
            self._tables.put((grid, caption_length), tables)
        return tables
