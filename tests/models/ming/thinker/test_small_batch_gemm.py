"""Which layers multiply a decode step's rows by our kernel."""

import os
import subprocess
import sys
from types import SimpleNamespace
from unittest.mock import patch

import pytest
import torch

from sglang_omni.engines.thinker.contract import ThinkerSettings
from sglang_omni.engines.thinker.launch import build_environment
from tests.testing.golden import TINY


def library() -> None:
    """Stands for SGLang's product."""


def is_ours(hopper: bool, deterministic: bool, block_quant: bool, is_fp8: bool = True) -> bool:
    """Whether a layer's product is ours afterwards."""
    from sglang.srt.layers.quantization.fp8 import Fp8LinearMethod

    from sglang_omni.models.ming.thinker import decode_moe, layers

    kind = Fp8LinearMethod if is_fp8 else SimpleNamespace
    method = kind.__new__(kind)
    method.block_quant, method.w8a8_block_fp8_linear = block_quant, library
    arguments = SimpleNamespace(enable_deterministic_inference=deterministic)
    with (
        patch.object(decode_moe, "is_sm90_supported", lambda: hopper),
        patch.object(decode_moe, "get_server_args", lambda: arguments),
    ):
        linear = SimpleNamespace(quant_method=method, weight=torch.empty(0))
        told = layers.use_small_batch_gemm(linear)
    assert told == (method.w8a8_block_fp8_linear is not library)
    return told


def check() -> None:
    """Hopper cards, blocks of eight bits, and batches that may matter: all three."""
    assert is_ours(hopper=True, deterministic=False, block_quant=True)
    assert not is_ours(hopper=False, deterministic=False, block_quant=True)
    assert not is_ours(hopper=True, deterministic=True, block_quant=True)
    assert not is_ours(hopper=True, deterministic=False, block_quant=False)
    assert not is_ours(hopper=True, deterministic=False, block_quant=True, is_fp8=False)


@pytest.mark.extended
def test_our_kernel_is_taken_where_it_was_measured_and_may_round_otherwise() -> None:
    # SGLang reads its environment at import, so it is imported by a process of its own.
    variables = build_environment(ThinkerSettings(TINY, device="cpu"), threads=1)
    program = (
        "from tests.models.ming.thinker import test_small_batch_gemm as t; t.check(); print('done')"
    )
    run = subprocess.run(
        [sys.executable, "-c", program],
        capture_output=True,
        text=True,
        env={**os.environ, **variables},
    )
    assert run.stdout.endswith("done\n"), run.stderr
