"""A residual's sum and its RMSNorm for few rows, from which the product after it starts early.

SGLang's kernel lets the next one start when it ends; this one lets it at once, so that a product
has asked for its weight by the time it has rows. The plain form is SGLang's own.
"""

import torch
import triton
import triton.language as tl
from torch import Tensor

from sglang_omni.kernels.chain import wait_for_inputs


@triton.jit
def _add_norm_kernel(  # type: ignore[no-untyped-def]
    x,
    residual,
    gain,
    out,
    total_out,
    eps,
    K: tl.constexpr,
    BLOCK: tl.constexpr,
    CHAINED: tl.constexpr,
):
    """One row."""
    row, cols = tl.program_id(0), tl.arange(0, BLOCK)
    inside = cols < K
    g = tl.load(gain + cols, mask=inside, other=0.0).to(tl.float32)
    wait_for_inputs(CHAINED)
    at = row * K + cols
    total = tl.load(x + at, mask=inside, other=0.0).to(tl.float32)
    total += tl.load(residual + at, mask=inside, other=0.0).to(tl.float32)
    tl.store(total_out + at, total.to(total_out.dtype.element_ty), mask=inside)
    scale = tl.rsqrt(tl.sum(total * total, axis=0) / K + eps)
    tl.store(out + at, (total * scale * g).to(out.dtype.element_ty), mask=inside)


def add_norm(
    x: Tensor, residual: Tensor, gain: Tensor, eps: float, chained: bool = False
) -> tuple[Tensor, Tensor]:
    """RMSNorm of x + residual, both [rows, K], times `gain` [K]; and that sum. In float32, each
    rounded once. Where `chained`, the gain is read before the kernel ahead has ended."""
    assert x.is_contiguous() and residual.is_contiguous() and gain.is_contiguous()
    assert x.shape == residual.shape and x.dtype == residual.dtype
    rows, width = x.shape
    out, total = torch.empty_like(x), torch.empty_like(x)
    block = triton.next_power_of_2(width)
    _add_norm_kernel[(rows,)](
        x,
        residual,
        gain,
        out,
        total,
        eps,
        K=width,
        BLOCK=block,
        CHAINED=chained,
        num_warps=max(1, min(8, block // 512)),
        launch_pdl=chained,
    )
    return out, total
