"""Both vision encoders give the released model's features.

They are the reference and the one that serves, on SGLang's layers and on plain ones.
"""

import pytest
import torch
from torch import Tensor, nn

from sglang_omni.models.ming.config import VisionConfig, read_encoder_config
from sglang_omni.models.ming.encoders.grid import (
    Grid,
    compute_grid,
    compute_merge_order,
    count_tokens,
)
from sglang_omni.models.ming.encoders.pixels import patchify
from sglang_omni.models.ming.encoders.vision_reference import VisionReference
from sglang_omni.protocol.errors import InvalidRequest
from tests.models.ming.encoders.cases import IMAGES, SEVERAL, frames, grids
from tests.testing.golden import TINY, Case, assert_close, load_case

BATCH_TOLERANCE = 1e-5


@pytest.fixture(scope="module")
def config() -> VisionConfig:
    return read_encoder_config(TINY).vision


def patches(case: Case, config: VisionConfig) -> Tensor:
    return torch.cat([patchify(picture, config) for picture in frames(case)])


@pytest.mark.parametrize("name", IMAGES + SEVERAL)
def test_patches_and_grids_agree(name: str, config: VisionConfig) -> None:
    case = load_case(name)
    found = [compute_grid(picture.shape, config) for picture in frames(case)]
    assert found == grids(case)
    assert sum(count_tokens(grid, config) for grid in found) == len(case["features"])
    if "pixel_values" in case.tensors:
        case.check("pixel_values", patches(case, config))


@pytest.mark.parametrize("name", IMAGES + SEVERAL)
def test_the_reference_agrees(name: str, reference: VisionReference, config: VisionConfig) -> None:
    case = load_case(name)
    with torch.inference_mode():
        case.check("vit_out", reference.vision(patches(case, config), grids(case)))
        case.check("features", reference(patches(case, config), grids(case)))


@pytest.mark.parametrize("layers", ["serving", "plain"])
@pytest.mark.parametrize("name", IMAGES + SEVERAL)
def test_the_serving_encoder_agrees(
    name: str, layers: str, request: pytest.FixtureRequest, config: VisionConfig
) -> None:
    serving, case = request.getfixturevalue(layers), load_case(name)
    with torch.inference_mode():
        inputs = serving.vision.embed(patches(case, config), grids(case))
        if "embed" in case.tensors:
            case.check("embed", inputs.hidden)
            case.check("block0", serving.vision.blocks[0](inputs.hidden, inputs))
        case.check("vit_out", serving.vision(inputs))
        case.check("features", serving(patches(case, config), grids(case)))


def test_a_frame_of_a_video_stands_for_itself(serving: nn.Module, config: VisionConfig) -> None:
    video = torch.randint(0, 256, (4, 64, 96, 3), dtype=torch.uint8)
    pairs = video.split(2)
    with torch.inference_mode():
        whole = serving(patchify(video, config), [Grid(2, 4, 6)])
        parts = [serving(patchify(pair, config), [Grid(1, 4, 6)]) for pair in pairs]
    assert_close(whole, torch.cat(parts), BATCH_TOLERANCE)


def test_features_do_not_depend_on_the_batch(serving: nn.Module, config: VisionConfig) -> None:
    pictures = [
        torch.randint(0, 256, (count, height, width, 3), dtype=torch.uint8)
        for count, height, width in ((1, 64, 96), (2, 32, 32), (1, 64, 96), (4, 96, 32))
    ]
    sizes = [compute_grid(picture.shape, config) for picture in pictures]
    with torch.inference_mode():
        packed = serving(torch.cat([patchify(p, config) for p in pictures]), sizes)
        alone = [serving(patchify(p, config), [g]) for p, g in zip(pictures, sizes, strict=True)]
    assert_close(packed, torch.cat(alone), BATCH_TOLERANCE)


def test_the_reference_can_be_trained(reference: VisionReference, config: VisionConfig) -> None:
    picture = torch.randint(0, 256, (1, 32, 32, 3), dtype=torch.uint8)
    features = reference(patchify(picture, config), [Grid(1, 2, 2)])
    weight = reference.vision.patch_embed.proj.weight
    (gradient,) = torch.autograd.grad(features[0, 0], weight)
    assert gradient.abs().max() > 0


def test_merge_order_puts_the_patches_of_a_token_together() -> None:
    assert compute_merge_order(2, 4, 2).tolist() == [0, 1, 4, 5, 2, 3, 6, 7]


@pytest.mark.parametrize(
    ("shape", "what"),
    [
        ((1, 48, 64, 3), "multiple of 32"),
        ((3, 64, 64, 3), "frames is 3"),
        ((64, 64, 3), "expected \\[frames"),
        ((1, 64, 64, 4), "expected \\[frames"),
        ((0, 64, 64, 3), "expected \\[frames"),
    ],
)
def test_frames_that_do_not_fit_are_refused(
    shape: tuple[int, ...], what: str, config: VisionConfig
) -> None:
    with pytest.raises(InvalidRequest, match=what):
        compute_grid(shape, config)
