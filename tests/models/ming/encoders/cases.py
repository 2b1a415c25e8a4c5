"""Golden cases of the encoders: their inputs in the form the encoders take."""

import torch
from torch import Tensor

from sglang_omni.models.ming.encoders.grid import Grid
from sglang_omni.models.ming.encoders.pixels import MEAN, STD
from tests.testing.golden import Case, cases, load_case

IMAGES = cases("vision", "image_")
# Of the full set; the repository's own cases are the images and clips above and below.
SEVERAL: list[str] = [
    name
    for name in ("vision/two_images", "vision/video_frames")
    if name in cases("vision", required=False)
]
CLIPS = cases("audio", "clip_")


def frames(case: Case) -> list[Tensor]:
    """The uint8 frames [frames, height, width, 3] of each picture of a case."""
    if "resized_rgb" in case.tensors:
        return [case["resized_rgb"].to(torch.uint8)[None]]
    sizes = [grid.patches for grid in grids(case)]
    pictures = zip(case["pixel_values"].split(sizes), grids(case), strict=True)
    return [_unpatch(patches, grid) for patches, grid in pictures]


def _unpatch(patches: Tensor, grid: Grid) -> Tensor:
    """The frames that patches [patches, 1536] were made of."""
    shape = (grid.frames, grid.height // 2, grid.width // 2, 2, 2, 3, 2, 16, 16)
    ordered = patches.view(shape).permute(0, 6, 1, 3, 7, 2, 4, 8, 5)
    pixels = ordered.reshape(grid.frames * 2, grid.height * 16, grid.width * 16, 3)
    values = ((pixels * torch.tensor(STD) + torch.tensor(MEAN)) * 255).round().to(torch.uint8)
    return values[:1] if grid.frames == 1 else values


def grids(case: Case) -> list[Grid]:
    """The grid of each picture of a case."""
    return [Grid(*row) for row in case["grid_thw"].tolist()]


def samples(case: Case) -> Tensor:
    """The float32 samples [samples] of a case."""
    wave = case["waveform_16k"]
    return wave / 32768 if wave.dtype == torch.int16 else wave


def loaded(names: list[str]) -> list[Case]:
    """Cases by name."""
    return [load_case(name) for name in names]
