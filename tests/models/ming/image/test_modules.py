"""Connector, glyph branch, transformer, VAE and sampling against the released model's results."""

import shutil
from pathlib import Path

import numpy as np
import pytest
import torch
from PIL import Image
from safetensors.torch import load_file, save_file
from torch import Tensor

from sglang_omni.models.ming.family import FAMILY
from sglang_omni.models.ming.image.config import read_head_config
from sglang_omni.models.ming.image.denoiser import DiffusersDenoiser, normalize_rows
from sglang_omni.models.ming.image.loading import (
    ImageModules,
    load_connector,
    load_glyphs,
    load_image_modules,
)
from sglang_omni.models.ming.image.pixels import resize_output, stretch_reference, to_uint8
from sglang_omni.models.ming.image.sampler import (
    DenoisingState,
    advance,
    combine_branches,
    draw_noise,
    open_state,
    predict_branches,
)
from sglang_omni.models.ming.image.schedule import compute_sigmas, read_scheduler_config
from sglang_omni.models.ming.image.sizes import crop_to_aspect, plan_sizes
from sglang_omni.protocol.errors import CheckpointError
from tests.testing.golden import Case, assert_close, file_of, load_case, require_case

LOOPS = ("cfg2", "cfg_glyph_len", "edit", "no_cfg", "one_step", "two_steps")
DIT = ("batch_mixed", "edit", "t2i_exact", "t2i_padded", "zero_caption")


def load(name: str) -> Case:
    require_case(f"image/{name}")
    return load_case(f"image/{name}")


def read_png(name: str) -> np.ndarray:
    return np.array(Image.open(file_of(f"image/{name}")).convert("RGB"))


@pytest.mark.parametrize("name", ["single", "batch_padded"])
def test_connector(modules: ImageModules, name: str) -> None:
    case = load(f"connector/{name}")
    mask = case["gen_mask"].bool()
    states = case["hidden_states"][mask].unflatten(0, (len(mask), -1))
    case.check("query_hidden", states)
    case.check("cond", modules.connector(states))


@pytest.mark.parametrize("name", ["batch", "short", "special_tokens"])
def test_glyph_branch(modules: ImageModules, name: str) -> None:
    case = load(f"byt5/{name}")
    glyphs = modules.glyphs
    assert glyphs is not None
    texts = case.info["texts"]
    ids, mask = glyphs.tokenizer.encode_batch(texts)
    case.check("input_ids", ids)
    case.check("mask", mask)
    case.check("encoder", glyphs.encoder(ids, mask))
    case.check("features", torch.cat([glyphs.compute_rows(text) for text in texts]))


def test_condition_rows_get_the_norm_1000() -> None:
    case = load("dit/wrapper_norm")
    case.check("cap", normalize_rows(case["cond"]))


@pytest.mark.parametrize("name", DIT)
def test_one_evaluation_of_the_transformer(modules: ImageModules, name: str) -> None:
    case = load(f"dit/{name}")
    count = len(case["t"])
    model = DiffusersDenoiser(modules.transformer)
    for index in range(count):
        reference = case.tensors.get(f"ref_{index}")
        branch = model.prepare(case[f"cap_{index}"], None if reference is None else reference[:, 0])
        out = model.predict(
            [[branch]], case[f"x_{index}"][None, :, 0], case["t"][index : index + 1]
        )
        case.check(f"out_{index}", out[0][0][:, None])


@pytest.mark.parametrize("steps", [1, 2, 4, 10, 28, 30])
def test_the_schedule_has_a_static_shift(modules: ImageModules, steps: int) -> None:
    case = load("sampler/schedule")
    case.check(f"sigmas_{steps}", compute_sigmas(dict(modules.scheduler), steps, (128, 128)))


@pytest.mark.parametrize("size", [(512, 512), (1024, 1024), (768, 1344)])
def test_a_file_that_asks_for_dynamic_shifting_gets_it(
    modules: ImageModules, size: tuple[int, int]
) -> None:
    case = load("sampler/schedule_dynamic")
    config = {**modules.scheduler, "use_dynamic_shifting": True}
    height, width = size
    case.check(f"sigmas_{height}x{width}", compute_sigmas(config, 10, (height // 8, width // 8)))


def open_loop(modules: ImageModules, case: Case) -> DenoisingState:
    info = case.info
    latent = info["height"] // 8, info["width"] // 8
    noise = draw_noise(info["seed"], latent)
    case.check("noise", noise[None])
    reference = None
    if "ref_pixels" in case.tensors:
        reference = modules.vae.encode(case["ref_pixels"][0])
        case.check("ref_latent", reference)
    sigmas = compute_sigmas(dict(modules.scheduler), info["steps"], latent)
    model = DiffusersDenoiser(modules.transformer)
    rows = case["cond"][0]
    zeros = torch.zeros_like(rows)
    return open_state(model, rows, zeros, reference, info["cfg"] or 0.0, sigmas, noise)


@pytest.mark.parametrize("name", LOOPS)
def test_sampling_loop(modules: ImageModules, name: str) -> None:
    case = load(f"sampler/{name}")
    state, model = open_loop(modules, case), DiffusersDenoiser(modules.transformer)
    steps: int = case.info["steps"]
    assert state.num_steps == max(1, steps - 1)
    latents: list[Tensor] = [state.latents]
    positives, combined = [], []
    while not state.is_finished:
        ((positive, negative),) = predict_branches(model, [state])
        positives.append(positive)
        combined.append(combine_branches(positive, negative, state.guidance))
        advance(model, [state])
        latents.append(state.latents)
    count = state.num_steps
    tolerance = case.tolerance("latents")
    assert_close(torch.stack(positives), case["v_pos"][:count], tolerance, "v_pos")
    assert_close(torch.stack(combined), case["v"][:count], tolerance, "v")
    # The last step of the released loop has no effect.
    latents += [state.latents] * (steps - count)
    case.check("latents", torch.stack(latents))
    image = modules.vae.decode(state.latents).astype(int)
    assert np.abs(image - read_png(f"sampler/{name}/image.png")).max() <= 1


def test_images_at_different_steps_share_an_evaluation(modules: ImageModules) -> None:
    model = DiffusersDenoiser(modules.transformer)
    cases = [load("sampler/cfg2")] * 2
    alone, first, second = (open_loop(modules, cases[0]) for _ in range(3))
    second.guidance, second.negative = 0.0, None
    advance(model, [alone])
    advance(model, [first])
    advance(model, [alone])
    advance(model, [first, second])
    assert (first.step, second.step) == (2, 1)
    assert_close(first.latents, alone.latents, 1e-4)


@pytest.mark.parametrize("name", ["cfg_glyph_len", "edit"])
def test_bfloat16_draws_nearly_the_same_image(checkpoint: Path, name: str) -> None:
    case = load(f"sampler/{name}")
    modules = load_image_modules(checkpoint, torch.device("cpu"), torch.bfloat16)
    model = DiffusersDenoiser(modules.transformer)
    info = case.info
    latent = info["height"] // 8, info["width"] // 8
    reference = None
    if "ref_pixels" in case.tensors:
        reference = modules.vae.encode(case["ref_pixels"][0])
    sigmas = compute_sigmas(dict(modules.scheduler), info["steps"], latent)
    noise = draw_noise(info["seed"], latent)
    rows = case["cond"][0]
    zeros = torch.zeros_like(rows)
    state = open_state(model, rows, zeros, reference, info["cfg"], sigmas, noise)
    while not state.is_finished:
        advance(model, [state])
    assert state.latents.dtype == torch.float32
    image = modules.vae.decode(state.latents).astype(float)
    error = np.mean((image - read_png(f"sampler/{name}/image.png")) ** 2)
    assert 10 * np.log10(255**2 / error) > 30


def test_vae(modules: ImageModules) -> None:
    case = load("vae/encode")
    case.check("latent", modules.vae.encode(case["pixels"][0])[None])
    case = load("vae/decode")
    expected = {name: tensor for name, tensor in case.tensors.items() if tensor.ndim == 4}
    latent = next(tensor for tensor in expected.values() if tensor.shape[1] == 16)
    image = modules.vae.decode(latent[0]).astype(int)
    pixels = next(tensor for tensor in expected.values() if tensor.shape[1] == 3)
    assert np.abs(image - to_uint8(pixels)[0]).max() <= 1


@pytest.mark.parametrize("name", ["aspect", "landscape", "tall"])
def test_reference_image(name: str) -> None:
    case = load(f"edit/reference_{name}")
    info, source = case.info, read_png(f"edit/reference_{name}/source.png")
    size = source.shape[0], source.shape[1]
    aspect = info.get("aspect_w_over_h")
    plan = plan_sizes(crop_to_aspect(size, aspect) if aspect else size, info["highres"])
    assert list(plan.requested) == info["requested_hw"]
    assert list(plan.bucket) == info["bucket_hw"]
    assert list(plan.output) == info["output_hw"]
    pixels = stretch_reference(source, plan.bucket)
    case.check("pixels_crop", pixels[:, 40:72, 50:90])
    assert np.array_equal(
        to_uint8(pixels[None])[0], read_png(f"edit/reference_{name}/reference.png")
    )


@pytest.mark.parametrize("size", [(137, 64), (96, 88), (96, 64)])
def test_output_resize(size: tuple[int, int]) -> None:
    load("edit/output_resize")
    width, height = size
    image = resize_output(read_png("edit/output_resize/decoded.png"), (height, width))
    assert np.array_equal(image, read_png(f"edit/output_resize/out_{width}x{height}.png"))


def test_another_scheduler_class_is_refused(tmp_path: Path) -> None:
    (tmp_path / "scheduler").mkdir()
    file = tmp_path / "scheduler" / "scheduler_config.json"
    file.write_text('{"_class_name": "DDIMScheduler"}', encoding="utf-8")
    with pytest.raises(CheckpointError, match="_class_name"):
        read_scheduler_config(tmp_path)


def copy_checkpoint(checkpoint: Path, folder: Path) -> Path:
    shutil.copytree(checkpoint, folder / "checkpoint")
    return folder / "checkpoint"


def test_capabilities_say_whether_a_checkpoint_draws(checkpoint: Path, tmp_path: Path) -> None:
    assert FAMILY.capabilities(checkpoint).image_output
    assert not FAMILY.capabilities(tmp_path).image_output


def test_a_head_of_another_kind_is_refused(checkpoint: Path, tmp_path: Path) -> None:
    copy = copy_checkpoint(checkpoint, tmp_path)
    (copy / "mlp" / "config.json").write_text('{"img_gen_scales": [4]}', encoding="utf-8")
    with pytest.raises(CheckpointError, match="dit_type"):
        read_head_config(copy)


@pytest.mark.parametrize("folder", ["mlp", "connector"])
def test_a_missing_tensor_is_named(checkpoint: Path, tmp_path: Path, folder: str) -> None:
    copy = copy_checkpoint(checkpoint, tmp_path)
    file = copy / folder / "model.safetensors"
    tensors = load_file(file)
    name = sorted(name for name in tensors if "proj" in name)[0]
    del tensors[name]
    save_file(tensors, file)
    with pytest.raises(CheckpointError, match=name.removeprefix("model.")):
        load_connector(copy, torch.device("cpu"), torch.float32)


def test_a_checkpoint_without_glyph_files_has_no_glyph_branch(
    checkpoint: Path, tmp_path: Path
) -> None:
    copy = copy_checkpoint(checkpoint, tmp_path)
    shutil.rmtree(copy / "byt5")
    assert load_glyphs(copy, torch.device("cpu"), torch.float32) is None
