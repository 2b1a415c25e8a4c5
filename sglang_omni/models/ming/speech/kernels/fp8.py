"""Quantize rows to FP8, one scale per row, fused with the operation before.

The largest absolute value of a row maps to the largest `float8_e4m3fn`. The plain form is
`quantize_rows_reference`.
"""

from dataclasses import dataclass

import torch
import triton
import triton.language as tl
from torch import Tensor

from sglang_omni.models.ming.speech.kernels.product import gelu_tanh

FP8 = torch.float8_e4m3fn
FP8_MAX = torch.finfo(FP8).max
MIN_PEAK = 1e-12


@dataclass(frozen=True)
class Fp8Rows:
    """Rows [M, K] as float8_e4m3fn `values` times float32 `scale` [M, 1]."""

    values: Tensor
    scale: Tensor


def quantize_rows_reference(x: Tensor) -> Fp8Rows:
    """Quantize the rows of x [M, K] by plain PyTorch operations."""
    values = x.float()
    scale = values.abs().amax(1, keepdim=True).clamp_min(MIN_PEAK) / FP8_MAX
    return Fp8Rows((values / scale).to(FP8), scale)


@triton.jit
def _quantize_kernel(  # type: ignore[no-untyped-def]
    x,
    added,
    gain,
    shift,
    out,
    scales,
    eps,
    K: tl.constexpr,
    ADD: tl.constexpr,
    NORM: tl.constexpr,
    SHIFT: tl.constexpr,
    GELU: tl.constexpr,
    QUANT_MAX: tl.constexpr,
    QUANT_MIN_PEAK: tl.constexpr,
    BLOCK: tl.constexpr,
):
    row = tl.program_id(0).to(tl.int64)
    ks = tl.arange(0, BLOCK)
    offs, mask = row * K + ks, ks < K
    values = tl.load(x + offs, mask=mask, other=0.0).to(tl.float32)
    if ADD:
        values += tl.load(added + offs, mask=mask, other=0.0).to(tl.float32)
        # Normalise the rounded values, which are those that the residual stream keeps.
        rounded = values.to(x.dtype.element_ty)
        tl.store(x + offs, rounded, mask=mask)
        values = rounded.to(tl.float32)
    if SHIFT:
        values += tl.load(shift + ks, mask=mask, other=0.0).to(tl.float32)
    if NORM:
        root = tl.rsqrt(tl.sum(values * values, axis=0) / K + eps)
        values = values * root * tl.load(gain + ks, mask=mask, other=0.0).to(tl.float32)
    if GELU:
        values = gelu_tanh(values)
    scale = tl.maximum(tl.max(tl.abs(values), axis=0), QUANT_MIN_PEAK) / QUANT_MAX
    tl.store(out + offs, (values / scale).to(out.dtype.element_ty), mask=mask)
    tl.store(scales + row, scale)


def _quantize(
    x: Tensor,
    *,
    added: Tensor | None = None,
    gain: Tensor | None = None,
    eps: float = 0.0,
    shift: Tensor | None = None,
    gelu: bool = False,
) -> Fp8Rows:
    rows, width = x.shape
    assert x.is_contiguous()
    assert added is None or added.is_contiguous()
    out = Fp8Rows(
        torch.empty(rows, width, device=x.device, dtype=FP8),
        torch.empty(rows, 1, device=x.device, dtype=torch.float32),
    )
    _quantize_kernel[(rows,)](
        x,
        x if added is None else added,
        x if gain is None else gain,
        x if shift is None else shift,
        out.values,
        out.scale,
        eps,
        K=width,
        ADD=added is not None,
        NORM=gain is not None,
        SHIFT=shift is not None,
        GELU=gelu,
        QUANT_MAX=FP8_MAX,
        QUANT_MIN_PEAK=MIN_PEAK,
        BLOCK=triton.next_power_of_2(width),
        num_warps=4 if width <= 1024 else 8,
    )
    return out


def quantize_rows(x: Tensor) -> Fp8Rows:
    """Quantize the rows of x [M, K]."""
    return _quantize(x)


def quantize_gelu(x: Tensor) -> Fp8Rows:
    """Quantize the rows of GELU(x), tanh form, x [M, K]."""
    return _quantize(x, gelu=True)


def quantize_norm(
    x: Tensor, gain: Tensor, eps: float, shift: Tensor | None = None, added: Tensor | None = None
) -> Fp8Rows:
    """Quantize the RMS-normalised rows of x [M, K] plus `shift` [K].

    `added` [M, K] is first added to x in place.
    """
    return _quantize(x, added=added, gain=gain, eps=eps, shift=shift)
