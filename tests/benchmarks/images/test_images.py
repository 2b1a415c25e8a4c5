"""The benchmark of images: its operations, its measures of quality, and a small run."""

import json
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
import torch
from torch.nn.attention import SDPBackend, sdpa_kernel
from torch.utils.flop_counter import FlopCounterMode

from benchmarks.images.__main__ import main
from benchmarks.images.quality import MAX_PSNR, compute_psnr, compute_ssim
from benchmarks.images.shapes import REAL, SMALL, random_image_modules
from benchmarks.images.work import Case, build_input, count_operations
from sglang_omni.models.ming.image.backend import Backend
from sglang_omni.models.ming.image.model import MingImageModel, build_image_model

CPU = torch.device("cpu")


def count_flops(build: Callable[[], MingImageModel], case: Case) -> float:
    """Return what PyTorch counts from the prepared branches to the last step."""
    model = build()
    counter = FlopCounterMode(display=False)
    # The fused attention of a CPU is not counted.
    with sdpa_kernel(SDPBackend.MATH), counter:
        image = model.start(build_input(SMALL, case, seed=0))
        while not image.state.is_finished:
            model.advance([image])
    return counter.get_total_flops()


@pytest.mark.extended
@pytest.mark.parametrize("backend", ["reference", "fast"])
@pytest.mark.parametrize("edit", [False, True])
def test_the_operations_are_those_that_pytorch_counts(backend: Backend, edit: bool) -> None:
    case = Case("small", 512, steps=2, edit=edit)

    def build() -> MingImageModel:
        return build_image_model(random_image_modules(SMALL, CPU, torch.float32), backend)

    # What a start takes beside the transformer, and the embeddings, are left out of the count.
    one = count_flops(build, case)
    more = count_flops(build, Case("small", 512, steps=4, edit=edit))
    operations = [count_operations(SMALL, Case("", 512, steps, edit=edit)) for steps in (2, 4)]
    name = "full" if backend == "reference" else "useful"
    expected = getattr(operations[1], name) - getattr(operations[0], name)
    assert (more - one) / expected == pytest.approx(1, abs=0.03)


def test_the_released_model_takes_the_known_number_of_operations() -> None:
    """About 60 TFLOP per branch at 1024 x 1024, and 29 useful steps."""
    operations = count_operations(REAL, Case("large", 1024, steps=30))
    assert operations.full / (29 * 2) == pytest.approx(58.5e12, rel=0.01)
    assert 0.96 < operations.useful / operations.full < 0.97


def test_every_weight_is_drawn_and_the_released_model_has_as_many_as_known() -> None:
    modules = random_image_modules(SMALL, CPU, torch.float32)
    for module in (modules.transformer, modules.connector):
        assert all(tensor.isfinite().all() for tensor in module.state_dict().values())
    with torch.device("meta"):
        released = type(modules.transformer).from_config(REAL.transformer)
    assert sum(p.numel() for p in released.parameters()) == pytest.approx(6.155e9, rel=1e-3)


def test_psnr_and_ssim() -> None:
    generator = np.random.default_rng(0)
    image = generator.integers(0, 255, (64, 48, 3), dtype=np.uint8)
    assert compute_psnr(image, image) == MAX_PSNR
    assert compute_ssim(image, image) == pytest.approx(1)
    assert compute_psnr(image, image + 1) == pytest.approx(20 * np.log10(255))
    assert compute_ssim(image, image + 1) > 0.999
    other = generator.integers(0, 255, (64, 48, 3), dtype=np.uint8)
    assert abs(compute_ssim(image, other)) < 0.1


def test_ssim_of_flat_images_is_that_of_their_means() -> None:
    one, other = np.full((16, 16, 3), 51, np.uint8), np.full((16, 16, 3), 102, np.uint8)
    expected = (2 * 0.2 * 0.4 + 1e-4) / (0.2**2 + 0.4**2 + 1e-4)
    assert compute_ssim(one, other) == pytest.approx(expected)


@pytest.mark.extended
def test_a_small_run_writes_what_it_measured(tmp_path: Path) -> None:
    out = tmp_path / "result.json"
    options = "--small --device cpu --dtype float32 --backend fast reference --fp8 --cases small"
    more = ["--runs", "1", "--seeds", "1", "--matrix-seconds", "0.01", "--out", str(out)]
    assert main([*options.split(), *more]) == 0
    result = json.loads(out.read_text(encoding="utf-8"))
    variants = [(row["backend"], row["fp8"]) for row in result["rows"]]
    assert variants == [("fast", False), ("reference", False), ("fast", True)]
    for row in result["rows"]:
        parts = sum(row[f"{part}_s"] for part in ("start", "denoise", "decode", "png"))
        assert row["total_s"] == pytest.approx(parts, abs=0.001)
        assert row["share_of_burst_rate"] > 0
    assert [row["backend"] for row in result["quality"]] == ["reference", "fast"]
    assert result["quality"][0]["psnr_db"]["min"] > 60, "both back ends draw the same image"
    assert 20 < result["quality"][1]["psnr_db"]["min"] < 60, "FP8 changes it a little"
