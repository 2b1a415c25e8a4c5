"""The fast evaluation of the transformer against diffusers' class and the released results."""

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
import torch
from torch import Tensor

from sglang_omni.models.ming.image.backend import select_backend
from sglang_omni.models.ming.image.denoiser import Denoiser, DiffusersDenoiser
from sglang_omni.models.ming.image.fast.denoiser import FastDenoiser
from sglang_omni.models.ming.image.loading import ImageModules, load_image_modules
from sglang_omni.models.ming.image.model import MingImageModel, load_image_model
from sglang_omni.models.ming.image.sampler import advance, draw_noise, open_state
from sglang_omni.models.ming.image.schedule import compute_sigmas
from sglang_omni.protocol.errors import ConfigError
from tests.testing.golden import assert_close, load_case, require_case

TOLERANCE = 2e-5
"""Of float32 results that sum in another order, relative to the largest value."""
CPU = torch.device("cpu")


def load_denoiser(checkpoint: Path, *, fp8: bool = False) -> FastDenoiser:
    """It takes the weights, so each has its own."""
    modules = load_image_modules(checkpoint, CPU, torch.float32)
    return FastDenoiser(modules.transformer, fp8=fp8)


@pytest.fixture(scope="session")
def fast(checkpoint: Path) -> FastDenoiser:
    return load_denoiser(checkpoint)


@pytest.fixture
def reference(modules: ImageModules) -> DiffusersDenoiser:
    return DiffusersDenoiser(modules.transformer)


@pytest.mark.parametrize("name", ["batch_mixed", "edit", "t2i_exact", "t2i_padded", "zero_caption"])
def test_one_evaluation_gives_the_released_result(fast: FastDenoiser, name: str) -> None:
    require_case(f"image/dit/{name}")
    case = load_case(f"image/dit/{name}")
    for index in range(len(case["t"])):
        reference = case.tensors.get(f"ref_{index}")
        rows = case[f"cap_{index}"]
        branch = fast.prepare(rows, None if reference is None else reference[:, 0])
        (out,) = fast.predict(
            [[branch]], case[f"x_{index}"][None, :, 0], case["t"][index : index + 1]
        )
        case.check(f"out_{index}", out[0][:, None])


def compare(
    denoisers: Sequence[Denoiser],
    inputs: Sequence[tuple[list[Tensor], Tensor | None]],
    latents: Tensor,
) -> None:
    """Check that both denoisers agree on images of these condition rows and references."""
    taus = torch.linspace(0, 0.9, len(inputs))
    results = []
    for denoiser in denoisers:
        branches = [[denoiser.prepare(rows, ref) for rows in group] for group, ref in inputs]
        results.append(denoiser.predict(branches, latents, taus))
    for fast, plain in zip(*results, strict=True):
        assert fast.shape == plain.shape
        assert fast.dtype == torch.float32
        assert_close(fast, plain, TOLERANCE)


def rows_of(count: int, seed: int) -> Tensor:
    generator = torch.Generator().manual_seed(seed)
    return torch.nn.functional.normalize(torch.randn(count, 40, generator=generator), dim=-1)


@pytest.mark.parametrize("size", [(8, 8), (6, 10), (14, 4)])
@pytest.mark.parametrize("edited", [False, True])
def test_a_batch_of_images_equals_the_reference(
    fast: FastDenoiser, reference: DiffusersDenoiser, size: tuple[int, int], edited: bool
) -> None:
    """Guided or not, at different noise levels, with and without padding of tokens and rows."""
    inputs: list[tuple[list[Tensor], Tensor | None]] = []
    for index, count in enumerate((16, 32, 16, 37)):
        rows = rows_of(count, index)
        source = draw_noise(100 + index, size) if edited or index == 3 else None
        inputs.append(([rows] if index == 1 else [rows, torch.zeros_like(rows)], source))
    latents = torch.stack([draw_noise(index, size) for index in range(4)])
    compare((fast, reference), inputs, latents)


def test_another_order_of_images_changes_nothing(fast: FastDenoiser) -> None:
    latents = torch.stack([draw_noise(index, (8, 8)) for index in range(3)])
    branches = [[fast.prepare(rows_of(count, count), None)] for count in (16, 40, 16)]
    taus = torch.tensor([0.0, 0.3, 0.6])
    out = fast.predict(branches, latents, taus)
    for index in range(3):
        one = slice(index, index + 1)
        (alone,) = fast.predict(branches[one], latents[one], taus[one])
        assert_close(out[index], alone, TOLERANCE)


@pytest.mark.parametrize("name", ["cfg2", "cfg_glyph_len", "edit", "no_cfg", "one_step"])
def test_sampling_loop_gives_the_released_latents(
    fast: FastDenoiser, modules: ImageModules, name: str
) -> None:
    require_case(f"image/sampler/{name}")
    case = load_case(f"image/sampler/{name}")
    assert_close(draw_latents(fast, modules, name), case["latents"][-1], case.tolerance("latents"))


def draw_latents(denoiser: FastDenoiser, modules: ImageModules, name: str) -> Tensor:
    """Return the last latents of a case."""
    case = load_case(f"image/sampler/{name}")
    info = case.info
    latent = info["height"] // 8, info["width"] // 8
    reference = None
    if "ref_pixels" in case.tensors:
        reference = modules.vae.encode(case["ref_pixels"][0])
    sigmas = compute_sigmas(dict(modules.scheduler), info["steps"], latent)
    noise, guidance = draw_noise(info["seed"], latent), info["cfg"] or 0.0
    rows = case["cond"][0]
    zeros = torch.zeros_like(rows)
    state = open_state(denoiser, rows, zeros, reference, guidance, sigmas, noise)
    while not state.is_finished:
        advance(denoiser, [state])
    return state.latents


def test_fp8_draws_nearly_the_same_image(
    checkpoint: Path, fast: FastDenoiser, modules: ImageModules
) -> None:
    require_case("image/sampler/cfg2")
    plain = draw_latents(fast, modules, "cfg2")
    rough = draw_latents(load_denoiser(checkpoint, fp8=True), modules, "cfg2")
    error = ((rough - plain).norm() / plain.norm()).item()
    assert 1e-4 < error < 0.1, "FP8 rounds, and does no more than that"


def test_the_loader_takes_the_back_end(checkpoint: Path) -> None:
    fast = load_image_model(checkpoint, "cpu", "float32", backend="fast")
    plain = load_image_model(checkpoint, "cpu", "float32")
    assert isinstance(fast.denoiser, FastDenoiser)
    assert isinstance(plain.denoiser, DiffusersDenoiser)
    assert np.abs(draw(fast).astype(int) - draw(plain)).max() <= 1


@pytest.mark.gpu
@pytest.mark.parametrize(("dtype", "limit"), [("float32", 0.1), ("bfloat16", 2.0)])
def test_a_gpu_draws_the_image_of_the_cpu(checkpoint: Path, dtype: str, limit: float) -> None:
    on_gpu = load_image_model(checkpoint, "cuda", dtype)
    assert isinstance(on_gpu.denoiser, FastDenoiser)
    plain = load_image_model(checkpoint, "cpu", "float32")
    assert np.abs(draw(on_gpu).astype(int) - draw(plain)).mean() <= limit


def draw(model: MingImageModel) -> np.ndarray:
    image = model.start(replace(model.sample_input(), steps=3))
    for _ in range(model.progress(image)[1]):
        model.advance([image])
    return model.finish(image)


@pytest.mark.parametrize(
    ("backend", "device", "fp8", "expected"),
    [
        ("auto", "cpu", False, "reference"),
        ("auto", "cuda:1", False, "fast"),
        ("auto", "cuda", True, "fast"),
        ("auto", "cpu", True, "fast"),
        ("reference", "cuda", False, "reference"),
        ("fast", "cpu", True, "fast"),
    ],
)
def test_back_end(backend: str, device: str, fp8: bool, expected: str) -> None:
    assert select_backend(backend, device, fp8=fp8) == expected


@pytest.mark.parametrize(
    ("backend", "device", "fp8"),
    [("quick", "cpu", False), ("reference", "cpu", True), ("reference", "cuda", True)],
)
def test_a_back_end_that_cannot_be_is_refused(backend: str, device: str, fp8: bool) -> None:
    with pytest.raises(ConfigError):
        select_backend(backend, device, fp8=fp8)
