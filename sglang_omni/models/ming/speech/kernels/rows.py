"""Row-wise kernels: RMS norm, SwiGLU activation, and the stop head."""

import torch
import triton
import triton.language as tl
from torch import Tensor

NORM_WARPS = 4
"""Warps per row. One to four are equally fast at 128 streams."""


@triton.jit
def _rms_norm_kernel(  # type: ignore[no-untyped-def]
    x,
    gain,
    shift,
    out,
    eps,
    K: tl.constexpr,
    SHIFT: tl.constexpr,
    BLOCK: tl.constexpr,
):
    row = tl.program_id(0).to(tl.int64)
    ks = tl.arange(0, BLOCK)
    mask = ks < K
    x_f32 = tl.load(x + row * K + ks, mask=mask, other=0.0).to(tl.float32)
    if SHIFT:
        x_f32 += tl.load(shift + ks, mask=mask, other=0.0).to(tl.float32)
    scale = tl.rsqrt(tl.sum(x_f32 * x_f32, axis=0) / K + eps)
    weight = tl.load(gain + ks, mask=mask, other=0.0).to(tl.float32)
    tl.store(out + row * K + ks, (x_f32 * scale * weight).to(out.dtype.element_ty), mask=mask)


def rms_norm(
    x: Tensor, gain: Tensor, eps: float, shift: Tensor | None = None, *, warps: int = NORM_WARPS
) -> Tensor:
    """Return the RMS-normalised rows of x [M, K] plus `shift` [K]."""
    rows, width = x.shape
    assert x.is_contiguous()
    out = torch.empty_like(x)
    _rms_norm_kernel[(rows,)](
        x,
        gain,
        gain if shift is None else shift,
        out,
        eps,
        K=width,
        SHIFT=shift is not None,
        BLOCK=triton.next_power_of_2(width),
        num_warps=warps,
    )
    return out


@triton.jit
def _silu_mul_kernel(x, out, N: tl.constexpr, BLOCK: tl.constexpr):  # type: ignore[no-untyped-def]
    row = tl.program_id(0).to(tl.int64)
    cols = tl.program_id(1) * BLOCK + tl.arange(0, BLOCK)
    mask = cols < N
    gate = tl.load(x + row * 2 * N + cols, mask=mask, other=0.0).to(tl.float32)
    up = tl.load(x + row * 2 * N + N + cols, mask=mask, other=0.0).to(tl.float32)
    tl.store(out + row * N + cols, (gate * tl.sigmoid(gate) * up).to(x.dtype.element_ty), mask)


def silu_mul(x: Tensor) -> Tensor:
    """Return silu(gate) * up [M, N] of x [M, 2 N], gate columns first."""
    rows, width = x.shape[0], x.shape[1] // 2
    assert x.is_contiguous()
    out = x.new_empty(rows, width)
    block = 1024
    _silu_mul_kernel[(rows, triton.cdiv(width, block))](x, out, N=width, BLOCK=block, num_warps=4)
    return out


@triton.jit
def _stop_probability_kernel(  # type: ignore[no-untyped-def]
    x,
    weight,
    bias,
    out,
    K: tl.constexpr,
    BLOCK: tl.constexpr,
):
    row = tl.program_id(0).to(tl.int64)
    ks = tl.arange(0, BLOCK)
    mask = ks < K
    dtype = x.dtype.element_ty
    x_f32 = tl.load(x + row * K + ks, mask=mask, other=0.0).to(tl.float32)
    continue_weight = tl.load(weight + ks, mask=mask, other=0.0).to(tl.float32)
    stop_weight = tl.load(weight + K + ks, mask=mask, other=0.0).to(tl.float32)
    # Round as the plain layer rounds its logits: near 0.5 the rounding decides the result.
    continue_logit = (tl.sum(x_f32 * continue_weight, axis=0) + tl.load(bias).to(tl.float32)).to(
        dtype
    )
    stop_logit = (tl.sum(x_f32 * stop_weight, axis=0) + tl.load(bias + 1).to(tl.float32)).to(dtype)
    tl.store(out + row, tl.sigmoid(stop_logit.to(tl.float32) - continue_logit.to(tl.float32)))


def compute_stop_probability(x: Tensor, weight: Tensor, bias: Tensor) -> Tensor:
    """Return float32 [M]: the second softmax probability of a linear head, weight [2, K]."""
    rows, width = x.shape
    assert weight.shape == (2, width)
    assert x.is_contiguous()
    assert weight.is_contiguous()
    out = torch.empty(rows, device=x.device, dtype=torch.float32)
    _stop_probability_kernel[(rows,)](
        x, weight, bias, out, K=width, BLOCK=triton.next_power_of_2(width), num_warps=4
    )
    return out
