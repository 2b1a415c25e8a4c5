"""`sgl-omni quantize --int4`: experts in four bits, other matrices in eight, the rest as it was."""

import json
from pathlib import Path

import pytest
import torch

from sglang_omni.entrypoints.cli.main import main
from sglang_omni.entrypoints.cli.quantize import quantize
from sglang_omni.models.base import HeadForm, WeightForm
from sglang_omni.models.ming.quantized_folders import convert_to_int4
from sglang_omni.models.ming.sizes import read_sizes
from sglang_omni.models.ming.thinker.fp8 import dequantize_weight
from sglang_omni.models.ming.thinker.fp8_layout import HEAD, SCALE_SUFFIX, is_quantized
from sglang_omni.models.ming.thinker.hf_config import MingConfig
from sglang_omni.models.ming.thinker.int4.layout import (
    build_int4_config,
    is_expert_matrix,
    is_int4,
    strip_weight,
)
from sglang_omni.models.ming.thinker.int4.weights import (
    Int4Matrix,
    dequantize_int4,
    quantize_expert,
)
from sglang_omni.models.ming.thinker.stored_forms import read_stored_form
from sglang_omni.models.ming.thinker.tensors import is_encoder_tensor, list_thinker_tensors
from sglang_omni.models.weights import TensorFolder
from sglang_omni.protocol.errors import CheckpointError, StartupError
from tests.entrypoints.cli.quantised import write_wide_checkpoint

WIDTH = 128


@pytest.fixture(scope="module")
def source(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("quantize") / "bf16"
    write_wide_checkpoint(folder, WIDTH)
    return folder


@pytest.fixture(scope="module")
def quantised(source: Path) -> Path:
    target = source.parent / "int4"
    assert main(["quantize", str(source), str(target), "--int4"]) == 0
    return target


def test_experts_are_in_four_bits_and_the_rest_as_with_fp8(source: Path, quantised: Path) -> None:
    before, after = TensorFolder(source), TensorFolder(quantised)
    experts = [name for name in before if is_expert_matrix(name)]
    # Sixteen routed experts and the shared one, in each of two sparse layers.
    assert len(experts) == 2 * 17 * 3
    for name in experts:
        stem, weight = strip_weight(name), before[name].float()
        restored = dequantize_int4(Int4Matrix(after[stem + "packed"], after[stem + "scale"]))
        assert (restored - weight).norm() < 0.11 * weight.norm(), name
        assert name not in after
        assert stem + "zero" not in after
    for name in before:
        if name in experts:
            continue
        if is_quantized(name, fp8_head=True):
            restored = dequantize_weight(after[name], after[name + SCALE_SUFFIX])
            assert (restored - before[name].float()).norm() < 0.04 * before[name].float().norm()
        else:
            assert torch.equal(after[name], before[name])


def test_it_has_exactly_the_tensors_that_the_model_loads(quantised: Path) -> None:
    config = MingConfig.from_pretrained(quantised)
    form = read_stored_form(config.quantization_config)
    expected = form.list_stored(list_thinker_tensors(config.llm_config))
    stored = {
        name: tuple(tensor.shape)
        for name, tensor in TensorFolder(quantised).items()
        if not is_encoder_tensor(name)
    }
    assert stored == expected


def test_a_zero_for_each_group_is_stored_if_asked_for(source: Path, tmp_path: Path) -> None:
    target = tmp_path / "asymmetric"
    assert main(["quantize", str(source), str(target), "--int4", "--asymmetric"]) == 0
    config = json.loads((target / "config.json").read_text())
    assert config["quantization_config"] == build_int4_config(symmetric=False, fp8_head=True)
    zeros = [tensor for name, tensor in TensorFolder(target).items() if name.endswith(".zero")]
    assert len(zeros) == 2 * 17 * 3
    assert all(tensor.dtype == torch.int16 and tensor.min() >= 0 for tensor in zeros)
    assert all(tensor.max() <= 15 and tensor.unique().numel() > 1 for tensor in zeros)


def test_the_head_stays_as_it_is_if_asked_for(source: Path, tmp_path: Path) -> None:
    target = tmp_path / "bf16_head"
    assert main(["quantize", str(source), str(target), "--int4", "--head", "bf16"]) == 0
    before, after = TensorFolder(source), TensorFolder(target)
    config = MingConfig.from_pretrained(target)
    # As before there was a choice.
    assert config.quantization_config == build_int4_config(symmetric=True)
    assert "lm_head" not in config.quantization_config
    assert torch.equal(after[HEAD], before[HEAD])
    assert HEAD + SCALE_SUFFIX not in after
    stored = read_stored_form(config.quantization_config)
    shapes = stored.list_stored(list_thinker_tensors(config.llm_config))
    assert shapes.keys() == {name for name in after if not is_encoder_tensor(name)}
    assert read_sizes(target).matrices > read_sizes(source).in_four_bits().matrices


def test_a_run_with_another_head_is_not_continued(source: Path, tmp_path: Path) -> None:
    identity = {"source": str(source), "form": WeightForm.INT4, "head": HeadForm.BF16}
    (tmp_path / "quantizing.json").write_text(json.dumps(identity))
    with pytest.raises(StartupError, match="another source or form"):
        quantize(source, tmp_path, WeightForm.INT4)


def test_narrow_experts_are_padded_with_zeros() -> None:
    weight = torch.randn(48, 256)
    name = "model.model.layers.1.mlp.experts.0.up_proj.weight"
    for shape, value in ((name, weight), (name.replace("up_", "down_"), weight.T.contiguous())):
        parts = list(quantize_expert(shape, value, symmetric=True).values())
        restored = dequantize_int4(Int4Matrix(*parts))
        rows, columns = value.shape
        assert restored.shape == (max(rows, 128), max(columns, 128))
        assert not restored[rows:].any()
        assert not restored[:, columns:].any()


def test_its_sizes_are_those_of_its_files(source: Path, quantised: Path) -> None:
    before, after = read_sizes(source), read_sizes(quantised)
    assert (after.int4, after.fp8, after.dtype) == (True, False, "four bits")
    stored = TensorFolder(quantised).items()
    num_bytes = {name: tensor.numel() * tensor.element_size() for name, tensor in stored}
    scales = sum(size for name, size in num_bytes.items() if name.endswith(SCALE_SUFFIX))
    assert after.rest == before.rest + scales
    experts = sum(size for name, size in num_bytes.items() if name.endswith((".packed", ".scale")))
    eight = sum(size for name, size in num_bytes.items() if is_quantized(name, fp8_head=True))
    assert after.matrices == experts + eight
    assert after.matrices < before.matrices / 2


def test_other_sizes_are_refused() -> None:
    config = build_int4_config(symmetric=True)
    assert is_int4(config)
    assert not is_int4(None)
    with pytest.raises(CheckpointError, match="four bits need"):
        is_int4(config | {"group_size": 64})


def test_options_that_contradict_each_other_are_refused(
    source: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    target = tmp_path / "out"
    assert main(["quantize", str(source), str(target), "--fp8", "--asymmetric"]) == 1
    assert "--asymmetric needs --int4" in capsys.readouterr().err
    target.mkdir()
    unfinished = {"source": str(source), "form": WeightForm.FP8}
    (target / "quantizing.json").write_text(json.dumps(unfinished))
    with pytest.raises(StartupError, match="another source or form"):
        quantize(source, target, WeightForm.INT4)


def test_a_hidden_size_that_no_group_divides_is_refused() -> None:
    name = "model.model.layers.1.mlp.experts.0.up_proj.weight"
    with pytest.raises(CheckpointError, match="multiple of 64"):
        convert_to_int4(name, torch.zeros(128, 192), symmetric=True, fp8_head=True)
