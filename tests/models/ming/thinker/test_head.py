"""An output head in FP8: what is stored of it, and that ranks multiply as one does."""

import os
import subprocess
import sys
from pathlib import Path
from types import SimpleNamespace
from typing import Any
from unittest.mock import patch

import pytest
import torch

from sglang_omni.engines.thinker.contract import ThinkerSettings
from sglang_omni.engines.thinker.launch import build_environment
from sglang_omni.models.ming.thinker.fp8 import dequantize_weight, quantize_head
from sglang_omni.models.ming.thinker.fp8_layout import (
    BLOCK,
    HEAD,
    QUANTIZATION_CONFIG,
    SCALE_SUFFIX,
    add_scales,
    build_fp8_config,
    has_fp8_head,
    is_block_fp8,
    is_quantized,
)
from sglang_omni.models.ming.thinker.int4.layout import build_int4_config, is_int4
from sglang_omni.models.ming.thinker.stored_forms import read_stored_form
from sglang_omni.protocol.errors import CheckpointError
from tests.testing.golden import TINY

PROGRAM = Path(__file__).with_name("run_heads.py")
SHAPES = {HEAD: (300, 256)}


def test_only_a_declared_head_is_in_fp8() -> None:
    declared = build_fp8_config(fp8_head=True), build_int4_config(symmetric=True, fp8_head=True)
    silent = QUANTIZATION_CONFIG, build_int4_config(symmetric=True)
    for config in declared:
        assert has_fp8_head(config)
        stored = read_stored_form(config).list_stored(SHAPES)
        assert stored == {HEAD: (300, 256), HEAD + SCALE_SUFFIX: (3, 2)}
    for config in (*silent, *({**config, "lm_head": False} for config in silent)):
        assert not has_fp8_head(config)
        assert read_stored_form(config).list_stored(SHAPES) == SHAPES
    assert is_block_fp8(declared[0])
    assert is_int4(declared[1])
    assert not has_fp8_head(None)
    assert build_fp8_config(fp8_head=False) == QUANTIZATION_CONFIG
    with pytest.raises(CheckpointError, match="lm_head='fp8'; it must be true"):
        has_fp8_head({**QUANTIZATION_CONFIG, "lm_head": "fp8"})


def test_no_other_tensor_outside_the_layers_is_in_fp8() -> None:
    assert is_quantized(HEAD, fp8_head=True)
    assert not is_quantized(HEAD)
    assert not is_quantized("model.model.word_embeddings.weight", fp8_head=True)
    assert add_scales(SHAPES) == SHAPES


@pytest.mark.parametrize("vocabulary", [256, 300])
def test_a_head_is_stored_within_the_error_of_fp8(vocabulary: int) -> None:
    weight = torch.randn(vocabulary, 256, generator=torch.Generator().manual_seed(0))
    values, scales = quantize_head(weight.bfloat16())
    assert values.shape == weight.shape
    assert values.is_contiguous()
    assert scales.shape == (-(-vocabulary // BLOCK), 2)
    restored = dequantize_weight(values, scales)
    assert restored.shape == weight.shape
    assert (restored - weight).norm() < 0.03 * weight.norm()
    with pytest.raises(CheckpointError, match="multiples of 128"):
        quantize_head(torch.zeros(256, 200))


def run_sglang(*arguments: str) -> None:
    # SGLang reads its environment at import, so it is imported by a process of its own.
    variables = build_environment(ThinkerSettings(TINY, device="cpu"), threads=1)
    paths = {"PYTHONPATH": str(Path(__file__).parents[4])}
    run = subprocess.run(
        [sys.executable, *arguments],
        capture_output=True,
        text=True,
        env={**os.environ, **variables, **paths},
    )
    assert run.returncode == 0, run.stderr[-2000:]


@pytest.mark.long
def test_ranks_multiply_their_parts_of_the_vocabulary(tmp_path: Path) -> None:
    from tests.models.ming.thinker.run_heads import RANKS, VOCABULARIES, draw

    run_sglang(str(PROGRAM), str(TINY), str(tmp_path / "found.pt"))
    found = torch.load(tmp_path / "found.pt")
    for vocabulary in VOCABULARIES:
        x, values, scales = draw(vocabulary)
        wanted = x @ dequantize_weight(values, scales).T
        for ranks in RANKS:
            torch.testing.assert_close(found["joined"][vocabulary, ranks], wanted)
            assert found["shares"][vocabulary, ranks] % BLOCK == 0
    # No more rows than each rank needs.
    assert found["shares"][2048, 8] == 256
    assert found["shares"][300, 4] == BLOCK
    assert not found["plain is quantized"]
    assert "--head bf16" in found["error"]


def check_outputs() -> None:
    """Small batches go to our kernel, and to SGLang's buffer where it has their shape."""
    from sglang.srt.layers.quantization.fp8 import Fp8LinearMethod

    from sglang_omni.kernels.split_k import Workspace
    from sglang_omni.models.ming.thinker import head as module
    from sglang_omni.models.ming.thinker.head import Fp8HeadMethod, set_logits_buffer

    given: list[Any] = []

    def multiply(x: Any, *_: Any, pdl: bool, out: torch.Tensor) -> torch.Tensor:
        assert pdl
        given.append(x)
        return out

    method = Fp8HeadMethod.__new__(Fp8HeadMethod)
    vocabulary, library = 384, torch.zeros(0)
    weight = torch.empty(vocabulary, 128)
    on_gpu = patch.object(torch.Tensor, "is_cuda", True)
    rows = [torch.zeros(count, 128, dtype=torch.bfloat16) for count in (0, 4, 64, 65)]
    buffer = torch.zeros(4, vocabulary)
    with (
        patch.object(module, "small_batch_linear", multiply),
        patch.object(Fp8LinearMethod, "apply", lambda *_: library),
        on_gpu,
    ):
        for ranks, dtype in ((1, torch.float32), (2, torch.bfloat16)):
            layer = SimpleNamespace(
                weight=weight, weight_scale_inv=None, tp_size=ranks, quant_method=method
            )
            method._workspace = Workspace(1, torch.device("cpu"))
            set_logits_buffer(layer, None)
            fresh = [method.apply(layer, x) for x in rows]
            assert fresh[0] is fresh[3] is library
            assert [one.dtype for one in fresh[1:3]] == [dtype, dtype]
            assert [one.shape for one in fresh[1:3]] == [(4, vocabulary), (64, vocabulary)]
        set_logits_buffer(layer, buffer)
        assert method.apply(layer, rows[1]) is buffer
        assert method.apply(layer, rows[2]) is not buffer
        # What SGLang then does costs nothing.
        assert buffer.copy_(buffer) is buffer
        # One rank's part of the logits does not go where all of them do.
        layer.weight = weight[:256]
        assert method.apply(layer, rows[1]) is not buffer
        method._workspace = None
        assert method.apply(layer, rows[1]) is library
    assert len(given) == 7


@pytest.mark.extended
def test_small_batches_are_multiplied_by_our_kernel_into_sglangs_buffer() -> None:
    run_sglang("-c", "from tests.models.ming.thinker import test_head as t; t.check_outputs()")
