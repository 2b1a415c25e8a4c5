"""Where the patches of a picture lie: merge order, learned positions and rotary angles.

Patches come in merge order: the patches that become one token are neighbours in the sequence.
Everything here depends on height and width only, so it is computed once per size.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache

import torch
from torch import Tensor

from sglang_omni.models.ming.config import VisionConfig
from sglang_omni.protocol.errors import InvalidRequest

ROTARY_THETA = 10000.0
# A table of a picture of the largest size takes 2.4 MB.
CACHED_SIZES = 32


@dataclass(frozen=True)
class Grid:
    """A picture in patches: `frames` temporal patches, each of `height` times `width`."""

    frames: int
    height: int
    width: int

    @property
    def frame_patches(self) -> int:
        """Patches of one temporal patch, which attend to each other and to no others."""
        return self.height * self.width

    @property
    def patches(self) -> int:
        """Patches of the whole picture."""
        return self.frames * self.frame_patches


@dataclass(frozen=True)
class FramePlaces:
    """Places of one frame's patches in merge order.

    `corners` [4, patches] are the learned positions around each patch (floor/floor, floor/ceil,
    ceil/floor, ceil/ceil) and `weights` [4, patches] their bilinear weights. `places` [2,
    patches] are row and column.
    """

    corners: Tensor
    weights: Tensor
    places: Tensor


def grid_of(shape: Sequence[int], config: VisionConfig) -> Grid:
    """The grid of frames [frames, height, width, 3]; one frame stands for a temporal patch.

    Raises `InvalidRequest` for sides that are no multiple of patch size times merge size, or an
    odd number of frames above one.
    """
    unit, time = config.patch_size * config.spatial_merge_size, config.temporal_patch_size
    if len(shape) != 4 or shape[3] != config.in_channels or 0 in shape:
        raise InvalidRequest(f"frames of shape {list(shape)} are no [frames, height, width, 3]")
    frames, height, width, _ = shape
    if height % unit or width % unit:
        raise InvalidRequest(f"a picture of {width}x{height} is not in multiples of {unit}")
    if frames > 1 and frames % time:
        raise InvalidRequest(f"{frames} frames do not divide by {time}")
    side = config.patch_size
    return Grid(max(1, frames // time), height // side, width // side)


def tokens(grid: Grid, config: VisionConfig) -> int:
    """Feature rows of a picture."""
    return grid.patches // config.spatial_merge_size**2


def frame_places(grid: Grid, config: VisionConfig, device: torch.device) -> FramePlaces:
    """Places of the patches of each frame of `grid`."""
    side, merge = config.position_side, config.spatial_merge_size
    return _frame_places(grid.height, grid.width, side, merge, device)


@lru_cache(CACHED_SIZES)
@torch.inference_mode(False)  # Training may use what serving put into the cache.
def _frame_places(
    height: int, width: int, side: int, merge: int, device: torch.device
) -> FramePlaces:
    # On the CPU whatever the device: the last bit of linspace differs between them.
    rows, columns = _axis(height, side), _axis(width, side)
    order = merge_order(height, width, merge)
    corners = [row[:, None] * side + column for row in rows[:2] for column in columns[:2]]
    weights = [row[:, None] * column for row in rows[2:] for column in columns[2:]]
    places = torch.stack((order // width, order % width))
    return FramePlaces(
        torch.stack(corners).flatten(1)[:, order].int().to(device),
        torch.stack(weights).flatten(1)[:, order].to(device),
        places.int().to(device),
    )


def _axis(count: int, side: int) -> tuple[Tensor, Tensor, Tensor, Tensor]:
    """Floor and ceiling positions of `count` patches over `side` positions, and their weights."""
    exact = torch.linspace(0, side - 1, count)
    floor = exact.int()
    ceiling = (floor + 1).clamp(max=side - 1)
    above = exact - floor
    return floor, ceiling, 1 - above, above


def merge_order(height: int, width: int, merge: int) -> Tensor:
    """Row-major patch numbers of a frame, in merge order: [height * width]."""
    numbers = torch.arange(height * width).view(height // merge, merge, width // merge, merge)
    return numbers.transpose(1, 2).flatten()


def sample_positions(table: Tensor, places: FramePlaces) -> Tensor:
    """Learned positions [patches, hidden] from their `table` [side * side, hidden], bilinear.

    In the table's dtype and this order, as the released model has it.
    """
    weights = places.weights.to(table.dtype)[..., None]
    first, second, third, fourth = table[places.corners] * weights
    return first + second + third + fourth


def angles(places: FramePlaces, head_dim: int) -> Tensor:
    """Rotary angles [patches, head_dim / 2] in float32: rows first, columns second."""
    frequencies = _frequencies(head_dim // 2, places.places.device)
    return (places.places.float()[..., None] * frequencies).transpose(0, 1).flatten(1)


@lru_cache
@torch.inference_mode(False)
def _frequencies(width: int, device: torch.device) -> Tensor:
    exponents = torch.arange(0, width, 2, dtype=torch.float32) / width
    return (1.0 / ROTARY_THETA**exponents).to(device)
