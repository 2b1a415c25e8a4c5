"""Convert frames to flattened, normalised patches in merge order."""

from functools import lru_cache

import torch
from torch import Tensor

from sglang_omni.models.ming.config import VisionConfig
from sglang_omni.models.ming.encoders.grid import compute_grid

# The constants of CLIP, also in `preprocessor_config.json`.
MEAN = (0.48145466, 0.4578275, 0.40821073)
STD = (0.26862954, 0.26130258, 0.27577711)
MAX_PIXEL = 255.0


def patchify(frames: Tensor, config: VisionConfig) -> Tensor:
    """Convert uint8 frames [frames, H, W, 3] to float32 patches [patches, channel * time * y * x].

    A single frame is repeated along time. Runs on the device of `frames`.

    Raises:
        InvalidRequest: `compute_grid` rejects the shape.
    """
    grid = compute_grid(frames.shape, config)
    side, merge, time = config.patch_size, config.spatial_merge_size, config.temporal_patch_size
    if len(frames) == 1:
        frames = frames.expand(time, -1, -1, -1)
    split = frames.reshape(
        grid.frames, time, grid.height // merge, merge, side, grid.width // merge, merge, side, -1
    )
    # (frame, row, column, y of merge, x of merge, channel, time, y, x)
    patches = split.permute(0, 2, 5, 3, 6, 8, 1, 4, 7)
    mean, std = _normalization_constants(frames.device)
    normalized = (patches / MAX_PIXEL - mean) / std
    return normalized.reshape(grid.patches, config.patch_width)


@lru_cache
@torch.inference_mode(False)
def _normalization_constants(device: torch.device) -> tuple[Tensor, ...]:
    """Return mean and deviation per channel, broadcastable to (channel, time, y, x)."""
    return tuple(torch.tensor(values).view(-1, 1, 1, 1).to(device) for values in (MEAN, STD))
