"""Rows in eight bits, each with a scale of its own, made in one pass with what comes before.

A row's largest value becomes the largest of `float8_e4m3fn`. The plain form is `quantize_rows_reference`.
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
    """Rows [M, K] as `values` in eight bits times `scale` [M, 1] float32."""

    values: Tensor
    scale: Tensor


def quantize_rows_reference(x: Tensor) -> Fp8Rows:
    """The rows of x [M, K], by plain operations."""
    wide = x.float()
    scale = wide.abs().amax(1, keepdim=True).clamp_min(MIN_PEAK) / FP8_MAX
    return Fp8Rows((wide / scale).to(FP8), scale)


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
    FP8_MAX: tl.constexpr,
    SMALLEST: tl.constexpr,
    BLOCK: tl.constexpr,
):
    row = tl.program_id(0).to(tl.int64)
    ks = tl.arange(0, BLOCK)
    at, inside = row * K + ks, ks < K
    wide = tl.load(x + at, mask=inside, other=0.0).to(tl.float32)
    if ADD:
        wide += tl.load(added + at, mask=inside, other=0.0).to(tl.float32)
        # What the residual stream keeps is what is normalised.
        kept = wide.to(x.dtype.element_ty)
        tl.store(x + at, kept, mask=inside)
        wide = kept.to(tl.float32)
    if SHIFT:
        wide += tl.load(shift + ks, mask=inside, other=0.0).to(tl.float32)
    if NORM:
        root = tl.rsqrt(tl.sum(wide * wide, axis=0) / K + eps)
        wide = wide * root * tl.load(gain + ks, mask=inside, other=0.0).to(tl.float32)
    if GELU:
        wide = gelu_tanh(wide)
    scale = tl.maximum(tl.max(tl.abs(wide), axis=0), SMALLEST) / FP8_MAX
    tl.store(out + at, (wide / scale).to(out.dtype.element_ty), mask=inside)
    tl.store(scales + row, scale)


def _launch(
    x: Tensor,
    *,
    added: Tensor | None = None,
    gain: Tensor | None = None,
    eps: float = 0.0,
    shift: Tensor | None = None,
    gelu: bool = False,
) -> Fp8Rows:
    rows, width = x.shape
    assert x.is_contiguous() and (added is None or added.is_contiguous())
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
        LARGEST=FP8_MAX,
        SMALLEST=MIN_PEAK,
        BLOCK=triton.next_power_of_2(width),
        num_warps=4 if width <= 1024 else 8,
    )
    return out


def quantize_rows(x: Tensor) -> Fp8Rows:
    """The rows of x [M, K] in eight bits."""
    return _launch(x)


def quantize_gelu(x: Tensor) -> Fp8Rows:
    """GELU, in its tanh form, of x [M, K] in eight bits."""
    return _launch(x, gelu=True)


def quantize_norm(
    x: Tensor, gain: Tensor, eps: float, shift: Tensor | None = None, added: Tensor | None = None
) -> Fp8Rows:
    """RMS normalisation of the rows of x [M, K] plus `shift` [K], in eight bits.

    `added` [M, K] is added to x in place first.
    """
    return _launch(x, added=added, gain=gain, eps=eps, shift=shift)
