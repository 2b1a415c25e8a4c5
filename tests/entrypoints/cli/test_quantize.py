"""`sgl-omni quantize`: what it writes is the same model within FP8's error, and loads strictly."""

import json
import shutil
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from safetensors.torch import save_file
from torch import Tensor

from sglang_omni.entrypoints.cli import quantize as command
from sglang_omni.entrypoints.cli.main import main
from sglang_omni.entrypoints.cli.quantize import quantize
from sglang_omni.models.checkpoint_files import DIFFUSERS_WEIGHTS_FILE
from sglang_omni.models.json_file import read_json
from sglang_omni.models.ming.image.fp8_layout import is_image_matrix
from sglang_omni.models.ming.image.model import MingImageModel, load_image_model
from sglang_omni.models.ming.sizes import read_sizes
from sglang_omni.models.ming.thinker.fp8 import dequantize_weight
from sglang_omni.models.ming.thinker.fp8_layout import (
    add_scales,
    is_block_fp8,
    is_quantized,
)
from sglang_omni.models.ming.thinker.hf_config import MingConfig, MingTextConfig
from sglang_omni.models.ming.thinker.loading import find_destination, load_thinker
from sglang_omni.models.ming.thinker.stored_forms import Fp8Form
from sglang_omni.models.ming.thinker.tensors import is_encoder_tensor, list_thinker_tensors
from sglang_omni.models.weights import TensorFolder
from sglang_omni.protocol.errors import CheckpointError, ConfigError, StartupError
from tests.entrypoints.cli.quantised import write_wide_checkpoint
from tests.testing.golden import TINY

# One step of a three-bit mantissa, halved by rounding.
FP8_ERROR = 2.0**-4
SMALL_PART = 400_000


@pytest.fixture(scope="module")
def source(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The tiny checkpoint with experts wide enough for a block."""
    folder = tmp_path_factory.mktemp("quantize") / "bf16"
    write_wide_checkpoint(folder)
    return folder


@pytest.fixture(scope="module")
def quantised(source: Path) -> Path:
    target = source.parent / "fp8"
    assert main(["quantize", str(source), str(target), "--fp8"]) == 0
    return target


def test_values_are_within_the_error_of_eight_bits(source: Path, quantised: Path) -> None:
    before, after = TensorFolder(source), TensorFolder(quantised)
    matrices = [name for name in before if is_quantized(name, fp8_head=True)]
    assert len(matrices) == 3 * (2 + 3) + 2 * 16 * 3 + 1
    for name in matrices:
        weight = before[name].float()
        assert after[name].dtype == torch.float8_e4m3fn
        error = dequantize_weight(after[name], after[name + "_scale_inv"]) - weight
        # Values far below a block's largest are subnormal: their error is one of the block.
        floor = weight.abs().max() * 2.0**-9 / 448 * 2**6
        assert (error.abs() <= FP8_ERROR * weight.abs() + floor).all(), name
        assert error.norm() < 0.04 * weight.norm(), name


def test_everything_else_is_the_same_to_the_bit(source: Path, quantised: Path) -> None:
    before, after = TensorFolder(source), TensorFolder(quantised)
    kept = [name for name in before if not is_quantized(name, fp8_head=True)]
    assert any(".gate.weight" in name for name in kept)
    assert any(is_encoder_tensor(name) for name in kept)
    for name in kept:
        assert after[name].dtype == before[name].dtype
        assert torch.equal(after[name], before[name])
    ours = {"model.safetensors.index.json", "config.json"}
    for path in source.rglob("*"):
        copy = quantised / path.relative_to(source)
        if path.is_file() and path.suffix != ".safetensors" and path.name not in ours:
            assert copy.read_bytes() == path.read_bytes()
    assert (quantised / "talker" / "model.safetensors").exists()


def test_the_configuration_is_read_as_block_fp8(quantised: Path) -> None:
    config = MingConfig.from_pretrained(quantised)
    assert is_block_fp8(config.quantization_config)
    assert not is_block_fp8(None)
    with pytest.raises(CheckpointError, match="only FP8 in blocks"):
        is_block_fp8({"quant_method": "awq"})


class Filled(torch.nn.Module):
    """A parameter for every destination, which notes the shapes that it is given."""

    def __init__(self, config: MingTextConfig) -> None:
        super().__init__()
        self.given: dict[str, tuple[int, ...]] = {}
        self._config = config

    def named_parameters(self, *_: Any, **__: Any) -> Iterator[tuple[str, torch.nn.Parameter]]:
        names = add_scales(list_thinker_tensors(self._config), fp8_head=True)
        targets = {find_destination(name, self._config.num_experts).parameter for name in names}
        yield from ((name, self._blank(name)) for name in targets)

    def _blank(self, name: str) -> torch.nn.Parameter:
        blank: Any = torch.nn.Parameter(torch.zeros(3, self._config.num_experts, 128))

        def fill(_: torch.nn.Parameter, tensor: Tensor, *__: object, **keys: object) -> None:
            self.given[f"{name} {keys}"] = tuple(tensor.shape)

        if ".router." not in name:
            blank.weight_loader = fill
        else:
            size = (3, self._config.num_experts, *((128,) if name.endswith("weight") else ()))
            blank.data = torch.zeros(size)
        return blank


def test_it_loads_strictly(quantised: Path) -> None:
    config = MingConfig.from_pretrained(quantised).llm_config
    tensors = dict(TensorFolder(quantised).items())
    model = Filled(config)
    load_thinker(model, config, tensors.items(), form=Fp8Form(fp8_head=True))
    scales = [name for name in model.given if "w2_weight_scale_inv" in name]
    # Sixteen routed experts and the shared one, in each of two sparse layers.
    assert len(scales) == 2 * 17
    scale = "model.model.layers.0.attention.dense.weight_scale_inv"
    rest = {name: tensor for name, tensor in tensors.items() if name != scale}
    with pytest.raises(CheckpointError, match=r"dense\.weight_scale_inv"):
        load_thinker(Filled(config), config, rest.items(), form=Fp8Form(fp8_head=True))
    with pytest.raises(CheckpointError, match="not part of the thinker"):
        load_thinker(Filled(config), config, tensors.items())


def test_a_cut_off_run_is_no_checkpoint_and_goes_on(
    source: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    target, quantize_part = tmp_path / "fp8", command._quantize_part
    done: list[tuple[Any, ...]] = []

    def cut_off(*arguments: Any) -> None:
        if len(done) == 3:
            raise KeyboardInterrupt
        done.append(arguments)
        quantize_part(*arguments)

    monkeypatch.setattr(command, "_quantize_part", cut_off)
    with pytest.raises(KeyboardInterrupt):
        quantize(source, target, max_part_bytes=SMALL_PART)
    assert not (target / "config.json").exists()
    written = {path: path.stat().st_mtime_ns for path in target.glob("*.safetensors")}
    assert len(written) == 3
    monkeypatch.setattr(command, "_quantize_part", quantize_part)
    quantize(source, target, max_part_bytes=SMALL_PART)
    assert {path: path.stat().st_mtime_ns for path in written} == written
    index = json.loads((target / "model.safetensors.index.json").read_text())
    assert len(set(index["weight_map"].values())) > 3
    assert set(TensorFolder(target)) == set(index["weight_map"])
    assert not (target / "quantizing.json").exists()


def draw(model: MingImageModel) -> np.ndarray:
    image = model.start(replace(model.sample_input(), steps=4))
    while model.progress(image)[0] < model.progress(image)[1]:
        model.advance([image])
    return model.finish(image)


@pytest.mark.parametrize("dtype", ["float32", pytest.param("bfloat16", marks=pytest.mark.extended)])
def test_images_are_those_of_fp8_made_at_load(source: Path, quantised: Path, dtype: str) -> None:
    at_load = draw(load_image_model(source, "cpu", dtype, backend="fast", fp8=True))
    stored = draw(load_image_model(quantised, "cpu", dtype))
    assert np.array_equal(stored, at_load)
    plain = draw(load_image_model(source, "cpu", dtype, backend="fast"))
    assert not np.array_equal(stored, plain)


def test_the_image_transformers_matrices_are_stored_in_fp8(source: Path, quantised: Path) -> None:
    before, after = (
        TensorFolder(folder / "transformer", DIFFUSERS_WEIGHTS_FILE)
        for folder in (source, quantised)
    )
    matrices = {name for name in before if is_image_matrix(name)}
    config = read_json(source / "transformer" / "config.json")
    assert len(matrices) == 7 * (2 * config["n_refiner_layers"] + config["n_layers"])
    assert set(after) == set(before) | {f"{name}_scale" for name in matrices}
    for name in before:
        if name not in matrices:
            assert torch.equal(after[name], before[name])
            continue
        assert after[name].dtype == torch.float8_e4m3fn
        scale = after[f"{name}_scale"]
        assert scale.shape == (len(before[name]), 1)
        weight = before[name].float()
        error = after[name].float() * scale - weight
        assert error.norm() < 0.04 * weight.norm(), name


def test_a_transformer_of_another_layout_is_refused(quantised: Path, tmp_path: Path) -> None:
    folder = tmp_path / "other"
    shutil.copytree(quantised, folder)
    path = folder / "transformer" / "config.json"
    config = json.loads(path.read_text())
    path.write_text(json.dumps({**config, "quantization_config": {"quant_method": "awq"}}))
    with pytest.raises(CheckpointError, match="only FP8 with a scale for each row"):
        load_image_model(folder, "cpu", "float32")
    del config["quantization_config"]
    path.write_text(json.dumps(config))
    with pytest.raises(CheckpointError, match="weight_scale"):
        load_image_model(folder, "cpu", "float32")
    with pytest.raises(ConfigError, match="FP8 needs the fast image back end"):
        load_image_model(quantised, "cpu", "float32", backend="reference")


def test_weights_that_are_not_fp8_do_not_pass_for_fp8(
    source: Path, quantised: Path, tmp_path: Path
) -> None:
    folder = tmp_path / "mixed"
    shutil.copytree(quantised, folder)
    tensors = dict(TensorFolder(folder / "transformer", DIFFUSERS_WEIGHTS_FILE).items())
    name = "layers.0.attention.to_q.weight"
    tensors[name] = TensorFolder(source / "transformer", DIFFUSERS_WEIGHTS_FILE)[name]
    save_file(tensors, folder / "transformer" / DIFFUSERS_WEIGHTS_FILE)
    with pytest.raises(CheckpointError, match=r"to_q\.weight' is .*; expected FP8 with a scale"):
        load_image_model(folder, "cpu", "float32")


def test_sizes_are_those_of_the_fp8_checkpoint(source: Path, quantised: Path) -> None:
    expected, found = read_sizes(source).quantized(), read_sizes(quantised)
    assert found.image_matrices == 0
    assert found.fp8
    # The estimate leaves the scales out, which the tiny rows have many of.
    scales = TensorFolder(quantised / "transformer", DIFFUSERS_WEIGHTS_FILE)
    scale_bytes = sum(2 * len(scales[name]) for name in scales if name.endswith("_scale"))
    assert found.image == expected.image + scale_bytes
    assert expected.image < read_sizes(source).image


def test_pieces_bound_what_is_in_memory(source: Path) -> None:
    pieces = list(command.plan_parts(source, SMALL_PART))
    assert all(piece.source_bytes <= SMALL_PART or len(piece.names) == 1 for piece in pieces)
    names = [name for piece in pieces for name in piece.names]
    assert sorted(names) == sorted(TensorFolder(source))


def test_what_cannot_be_quantised_is_refused(
    source: Path, quantised: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    with pytest.raises(CheckpointError, match="quantized already"):
        quantize(quantised, tmp_path / "again")
    with pytest.raises(StartupError, match="not an empty folder"):
        quantize(source, source.parent)
    # Its experts are narrower than a block.
    assert main(["quantize", str(TINY), str(tmp_path / "out"), "--fp8"]) == 1
    assert "must be multiples of 128" in capsys.readouterr().err
