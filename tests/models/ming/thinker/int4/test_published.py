"""Published four-bit layouts are read to the last bit, and what is not understood is refused."""

from typing import Any

import pytest
import torch
from torch import Tensor

from sglang_omni.models.ming.thinker.hf_config import MingConfig
from sglang_omni.models.ming.thinker.int4.layout import METHOD, is_int4_tensor, read_int4_format
from sglang_omni.models.ming.thinker.int4.published_configs import rewrite_quantization
from sglang_omni.models.ming.thinker.int4.weights import Int4Matrix, dequantize_int4
from sglang_omni.models.ming.thinker.stored_forms import StoredForm, read_stored_form
from sglang_omni.protocol.errors import CheckpointError
from tests.models.ming.thinker.int4.writers import (
    PUBLISHED,
    Published,
    awq_config,
    compressed_config,
    draw_quantized,
    gptq_config,
)

STEM = "model.model.layers.1.mlp.experts.3.up_proj."
ROWS, COLUMNS = 128, 384


def open_form(config: dict[str, Any]) -> StoredForm:
    return read_stored_form(rewrite_quantization(config, "bfloat16"))


def convert(form: StoredForm, tensors: dict[str, Tensor]) -> dict[str, Tensor]:
    found = (form.convert(STEM + suffix, tensor) for suffix, tensor in tensors.items())
    return {pair[0].removeprefix(STEM): pair[1] for pair in found if pair is not None}


@pytest.mark.parametrize("layout", PUBLISHED.values(), ids=PUBLISHED)
def test_it_is_read_exactly(layout: Published) -> None:
    drawn = draw_quantized(ROWS, COLUMNS, layout.dtype, layout.symmetric)
    tensors, form = layout.write(drawn), open_form(layout.config)
    stored = form.list_stored({STEM + "weight": (ROWS, COLUMNS), "model.lm_head.weight": (9, 7)})
    shapes = {STEM + suffix: tuple(tensor.shape) for suffix, tensor in tensors.items()}
    assert stored == {**shapes, "model.lm_head.weight": (9, 7)}
    matrix = Int4Matrix(**convert(form, tensors))
    assert (matrix.zero is None) == layout.symmetric
    assert torch.equal(dequantize_int4(matrix), drawn.restore())
    weights = [suffix for suffix in tensors if suffix not in ("weight_shape", "g_idx")]
    assert all(is_int4_tensor(STEM + suffix) for suffix in weights)
    other = torch.zeros(2)
    assert form.convert("model.lm_head.weight", other) == ("model.lm_head.weight", other)


@pytest.mark.parametrize("layout", PUBLISHED.values(), ids=PUBLISHED)
def test_sglang_finds_this_projects_method(layout: Published) -> None:
    config = MingConfig(torch_dtype="bfloat16", quantization_config=layout.config)
    assert config.quantization_config["quant_method"] == METHOD
    stored = read_int4_format(config.quantization_config)
    assert getattr(torch, stored.scale_dtype) == layout.dtype
    assert stored.symmetric == layout.symmetric
    assert not stored.fp8_rest
    again = MingConfig(torch_dtype="bfloat16", quantization_config=config.quantization_config)
    assert again.quantization_config == config.quantization_config


@pytest.mark.parametrize(
    ("config", "said"),
    [
        (compressed_config(num_bits=8), "num_bits=8"),
        (compressed_config(group_size=32), "group_size=32"),
        (compressed_config(strategy="channel"), "strategy='channel'"),
        (compressed_config(type="float"), "type='float'"),
        (compressed_config(actorder="group"), "actorder='group'"),
        ({**compressed_config(), "format": "float-quantized"}, "format='float-quantized'"),
        ({**compressed_config(), "config_groups": {}}, "0 groups"),
        (awq_config(version="gemv"), "version='gemv'"),
        (awq_config(zero_point=False), "zero_point=False"),
        (awq_config(group_size=64), "group_size=64"),
        (gptq_config(bits=8), "bits=8"),
        (gptq_config(desc_act=True), "act-order"),
        (gptq_config(group_size=-1), "group_size=-1"),
        (gptq_config(checkpoint_format="marlin"), "checkpoint_format='marlin'"),
        ({"quant_method": "bitsandbytes"}, "only FP8 in blocks"),
    ],
)
def test_what_is_not_understood_is_refused_by_name(config: dict[str, Any], said: str) -> None:
    with pytest.raises(CheckpointError) as refused:
        open_form(config)
    assert said in refused.value.message


def test_activations_in_few_bits_are_refused() -> None:
    config = compressed_config()
    config["config_groups"]["group_0"]["input_activations"] = {"num_bits": 8}
    with pytest.raises(CheckpointError, match="input_activations"):
        open_form(config)


def test_columns_in_another_order_are_refused_even_if_the_configuration_hides_them() -> None:
    tensors = PUBLISHED["gptq"].write(draw_quantized(ROWS, COLUMNS, torch.float16, False))
    tensors["g_idx"] = tensors["g_idx"].flip(0)
    with pytest.raises(CheckpointError, match="act-order"):
        convert(open_form(gptq_config()), tensors)


def test_a_symmetric_checkpoint_with_other_zeros_is_refused() -> None:
    tensors = PUBLISHED["gptq"].write(draw_quantized(ROWS, COLUMNS, torch.float16, False))
    with pytest.raises(CheckpointError, match="zeros other than 8"):
        convert(open_form(gptq_config(sym=True)), tensors)


def test_sizes_that_no_group_divides_are_refused() -> None:
    with pytest.raises(CheckpointError, match="multiples of 128"):
        open_form(awq_config()).list_stored({STEM + "weight": (ROWS, 64)})
