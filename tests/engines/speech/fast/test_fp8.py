"""Rows and products in eight bits, and the flow blocks made of them, against the plain rules."""

import pytest
import torch
import torch.nn.functional as F
from torch import Tensor

from sglang_omni.kernels.split_k import Workspace
from sglang_omni.models.ming.speech import dit
from sglang_omni.models.ming.speech.fast import fp8
from sglang_omni.models.ming.speech.fast.fp8 import Fp8Ops, multiply_fp8, multiply_fp8_reference
from sglang_omni.models.ming.speech.fast.layers import run_flow_blocks
from sglang_omni.models.ming.speech.fast.ops import FusedOps, LibraryOps, Ops
from sglang_omni.models.ming.speech.fast.packed import pack_flow
from sglang_omni.models.ming.speech.kernels import fp8 as kernel
from sglang_omni.models.ming.speech.kernels.fp8 import (
    Fp8Rows,
    quantize_gelu,
    quantize_norm,
    quantize_rows,
    quantize_rows_reference,
)
from tests.engines.speech.fast.conftest import INTERPRETED, Draw
from tests.testing.golden import assert_close

EPS = 1e-6


@pytest.fixture(autouse=True)
def no_rounding_under_the_interpreter(monkeypatch: pytest.MonkeyPatch) -> None:
    """Keep all bits of the rows under the interpreter.

    It rounds to eight bits wrongly where a mantissa carries. So everything else is compared
    closely.
    """
    if INTERPRETED:
        monkeypatch.setattr(kernel, "FP8", torch.float32)
        monkeypatch.setattr(fp8, "multiply_fp8", multiply_fp8_reference)


def wide(rows: Fp8Rows) -> Tensor:
    return rows.values.float() * rows.scale


def assert_rows(rows: Fp8Rows, expected: Tensor) -> None:
    """Check that scales are the same and values differ by a step at most.

    A step is an eighth, where a value falls between two of eight bits.
    """
    plain = quantize_rows_reference(expected)
    torch.testing.assert_close(rows.scale, plain.scale, rtol=1e-5 if INTERPRETED else 2e-2, atol=0)
    step = {"rtol": 0.15, "atol": plain.scale.max().item()}
    close = {"rtol": 1e-5, "atol": 1e-6} if INTERPRETED else step
    torch.testing.assert_close(wide(rows), wide(plain), **close)


@pytest.mark.parametrize("width", [24, 64, 200])
def test_rows_and_their_gelu(draw: Draw, width: int) -> None:
    x = draw(7, width, scale=3.0)
    x[2] = 0
    assert_rows(quantize_rows(x), x)
    assert_rows(quantize_gelu(x), F.gelu(x.float(), approximate="tanh"))
    assert not wide(quantize_rows(x))[2].any()


@pytest.mark.parametrize("added", [False, True])
@pytest.mark.parametrize("shifted", [False, True])
def test_rows_are_added_to_and_normalised(draw: Draw, added: bool, shifted: bool) -> None:
    x, more, gain, shift = draw(7, 96), draw(7, 96), draw(96), draw(96).float()
    stream = x + more if added else x.clone()
    rows = quantize_norm(x, gain, EPS, shift if shifted else None, more if added else None)
    assert torch.equal(x, stream)
    base = stream.float() + shift if shifted else stream.float()
    assert_rows(rows, F.rms_norm(base, (96,), gain.float(), EPS))


@pytest.mark.skipif(INTERPRETED, reason="the product in eight bits is a GPU's")
@pytest.mark.parametrize("bias", [False, True])
def test_the_librarys_product_is_the_plain_one(
    draw: Draw, device: torch.device, bias: bool
) -> None:
    x, weight = (
        quantize_rows_reference(draw(256, 128)),
        quantize_rows_reference(draw(64, 128, scale=0.1)),
    )
    shift = draw(64).bfloat16() if bias else None
    out = multiply_fp8(x, weight, shift)
    assert out.dtype == torch.bfloat16
    assert_close(out.float(), multiply_fp8_reference(x, weight, shift), 1e-2)


def test_blocks_stay_near_those_of_full_precision(
    stack: dit.BlockStack, draw: Draw, device: torch.device, dtype: torch.dtype
) -> None:
    if dtype == torch.float32 and not INTERPRETED:
        pytest.skip("products in eight bits are bfloat16")
    flow = pack_flow(stack, 37, fp8=True)
    tokens = draw(2, 37, 64)
    fused = FusedOps(Workspace(1 << 18, device))

    def run(ops: Ops, end: Ops) -> Tensor:
        made = run_flow_blocks(flow, tokens.clone(), slice(-4, None), ops, end)
        return end.norm_linear(made, flow.final_norm, flow.final).float()

    expected = run(fused, fused)
    # The library's GELU on a CPU is not the tanh form, which is most of this error.
    low, high = (0, 1e-4) if INTERPRETED else (1e-4, 0.06)
    for tail in (Fp8Ops(), LibraryOps(), fused):
        error = (run(Fp8Ops(), tail) - expected).norm() / expected.norm()
        assert low < error < high, type(tail).__name__
