"""Positions of image patches: merge order, learned positions and rotary angles.

Patches are in merge order: the patches that become one token are adjacent. Everything here
depends only on height and width, so it is computed once per size.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache

import torch
from torch import Tensor

from sglang_omni.models.ming.config import VisionConfig
from sglang_omni.protocol.errors import InvalidRequest

ROTARY_THETA = 10000.0
# The table of an image of the maximum size takes 2.4 MB.
CACHED_SIZES = 32


@dataclass(frozen=True)
class Grid:
    """Patch grid of an image or video: `frames` temporal patches of `height` x `width` patches."""

    frames: int
    height: int
    width: int

    @property
    def frame_patches(self) -> int:
        """Return the number of patches in one temporal patch; only these attend to each other."""
        return self.height * self.width

    @property
    def patches(self) -> int:
        """Return the total number of patches."""
        return self.frames * self.frame_patches


@dataclass(frozen=True)
class PatchPositions:
    """Positions of the patches of one frame, in merge order.

    `corners` [4, patches] are the indices of the learned positions around each patch (floor/floor,
    floor/ceil, ceil/floor, ceil/ceil), `weights` [4, patches] their bilinear weights. `positions`
    [2, patches] are row and column.
    """

    corners: Tensor
    weights: Tensor
    positions: Tensor


def compute_grid(shape: Sequence[int], config: VisionConfig) -> Grid:
    """Return the grid of frames [frames, height, width, 3]; one frame makes a temporal patch.

    Raises:
        InvalidRequest: A side is not a multiple of patch size times merge size, or the number of
            frames is above one and odd.
    """
    unit, time = config.patch_size * config.spatial_merge_size, config.temporal_patch_size
    if len(shape) != 4 or shape[3] != config.in_channels or 0 in shape:
        raise InvalidRequest(
            f"frames have shape {list(shape)}; expected [frames, height, width, 3]"
        )
    frames, height, width, _ = shape
    if height % unit or width % unit:
        raise InvalidRequest(f"image size {width}x{height} must be a multiple of {unit}")
    if frames > 1 and frames % time:
        raise InvalidRequest(f"the number of frames is {frames}; it must be a multiple of {time}")
    side = config.patch_size
    return Grid(max(1, frames // time), height // side, width // side)


def count_tokens(grid: Grid, config: VisionConfig) -> int:
    """Return the number of tokens, and of feature rows, of a grid."""
    return grid.patches // config.spatial_merge_size**2


def compute_patch_positions(
    grid: Grid, config: VisionConfig, device: torch.device
) -> PatchPositions:
    """Return the positions of the patches of each frame of `grid`."""
    side, merge = config.position_side, config.spatial_merge_size
    return _compute_patch_positions(grid.height, grid.width, side, merge, device)


@lru_cache(CACHED_SIZES)
@torch.inference_mode(False)  # Training may use cached entries that serving made.
def _compute_patch_positions(
    height: int, width: int, side: int, merge: int, device: torch.device
) -> PatchPositions:
    # Always on the CPU: linspace differs between devices in the last bit.
    rows, columns = _interpolate_axis(height, side), _interpolate_axis(width, side)
    order = compute_merge_order(height, width, merge)
    corners = [row[:, None] * side + column for row in rows[:2] for column in columns[:2]]
    weights = [row[:, None] * column for row in rows[2:] for column in columns[2:]]
    positions = torch.stack((order // width, order % width))
    return PatchPositions(
        torch.stack(corners).flatten(1)[:, order].int().to(device),
        torch.stack(weights).flatten(1)[:, order].to(device),
        positions.int().to(device),
    )


def _interpolate_axis(count: int, side: int) -> tuple[Tensor, Tensor, Tensor, Tensor]:
    """Return floor and ceiling of `count` patches over `side` positions, and their weights."""
    position = torch.linspace(0, side - 1, count)
    floor = position.int()
    ceiling = (floor + 1).clamp(max=side - 1)
    ceiling_weight = position - floor
    return floor, ceiling, 1 - ceiling_weight, ceiling_weight


def compute_merge_order(height: int, width: int, merge: int) -> Tensor:
    """Return the row-major patch numbers of a frame in merge order, [height * width]."""
    numbers = torch.arange(height * width).view(height // merge, merge, width // merge, merge)
    return numbers.transpose(1, 2).flatten()


def interpolate_positions(table: Tensor, patch_positions: PatchPositions) -> Tensor:
    """Interpolate learned positions [patches, hidden] from `table` [side * side, hidden].

    Bilinear, in the dtype of the table and in this order, as in the released model.
    """
    weights = patch_positions.weights.to(table.dtype)[..., None]
    first, second, third, fourth = table[patch_positions.corners] * weights
    return first + second + third + fourth


def compute_rotary_angles(patch_positions: PatchPositions, head_dim: int) -> Tensor:
    """Return float32 rotary angles [patches, head_dim / 2]: rows first, columns second."""
    frequencies = _compute_frequencies(head_dim // 2, patch_positions.positions.device)
    return (patch_positions.positions.float()[..., None] * frequencies).transpose(0, 1).flatten(1)


@lru_cache
@torch.inference_mode(False)
def _compute_frequencies(width: int, device: torch.device) -> Tensor:
    exponents = torch.arange(0, width, 2, dtype=torch.float32) / width
    return (1.0 / ROTARY_THETA**exponents).to(device)
