"""What a medium costs, by the arithmetic of the API process, is what the encoders give."""

import pytest

from sglang_omni.models.ming.config import read_encoder_config
from sglang_omni.models.ming.encoders.audio import count_feature_rows
from sglang_omni.models.ming.encoders.grid import compute_grid, count_tokens
from sglang_omni.models.ming.media_rules import clip_tokens, patch_grid, picture_tokens
from tests.testing.golden import TINY

SHAPES = [(1, 32, 32, 3), (1, 64, 224, 3), (2, 96, 32, 3), (6, 320, 448, 3)]
CONFIG = read_encoder_config(TINY)


@pytest.mark.parametrize("samples", [201, 320, 640, 1_000, 16_137, 46_055, 160_000])
def test_tokens_of_a_clip(samples: int) -> None:
    assert clip_tokens(samples) == count_feature_rows(samples, CONFIG.audio)


@pytest.mark.parametrize(
    "shape", [(1, 32, 32, 3), (1, 64, 224, 3), (2, 96, 32, 3), (6, 320, 448, 3)]
)
def test_tokens_of_a_picture(shape: tuple[int, ...]) -> None:
    grid, theirs = patch_grid(shape), compute_grid(shape, CONFIG.vision)
    assert grid == (theirs.frames, theirs.height, theirs.width)
    assert grid[0] * picture_tokens(grid) == count_tokens(theirs, CONFIG.vision)
