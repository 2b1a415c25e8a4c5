"""What experts gave, summed, added to the residual stream and normalised: for few rows.

SGLang has a kernel for the sum and one for the rest, and each costs more to start than to run. The
plain form is `experts_triton.sum_experts` and SGLang's norm.
"""

import torch
import triton
import triton.language as tl
from torch import Tensor

from sglang_omni.kernels.pdl import wait_for_inputs


@triton.jit
def _sum_norm_kernel(  # type: ignore[no-untyped-def]
    parts,
    residual,
    gain,
    out,
    total_out,
    eps,
    K: tl.constexpr,
    COUNT: tl.constexpr,
    BLOCK: tl.constexpr,
    PDL: tl.constexpr,
):
    """One row."""
    row, cols = tl.program_id(0), tl.arange(0, BLOCK)
    inside = cols < K
    # The gain depends on nothing: it travels while the kernel ahead still runs.
    g = tl.load(gain + cols, mask=inside, other=0.0).to(tl.float32)
    wait_for_inputs(PDL)
    at = row * K + cols
    total = tl.load(residual + at, mask=inside, other=0.0).to(tl.float32)
    for part in tl.static_range(COUNT):
        held = tl.load(parts + (row * COUNT + part) * K + cols, mask=inside, other=0.0)
        total += held.to(tl.float32)
    tl.store(total_out + at, total.to(total_out.dtype.element_ty), mask=inside)
    scale = tl.rsqrt(tl.sum(total * total, axis=0) / K + eps)
    tl.store(out + at, (total * scale * g).to(out.dtype.element_ty), mask=inside)


def sum_norm(
    parts: Tensor, residual: Tensor, gain: Tensor, eps: float, *, pdl: bool = False
) -> tuple[Tensor, Tensor]:
    """RMSNorm, times `gain` [K], of the sum of residual [rows, K] and parts [rows, count, K]; and
    that sum. In float32, each rounded once."""
    rows, count, width = parts.shape
    assert parts.is_contiguous() and residual.is_contiguous() and gain.is_contiguous()
    assert residual.shape == (rows, width) and parts.dtype == residual.dtype
    out, total = torch.empty_like(residual), torch.empty_like(residual)
    block = triton.next_power_of_2(width)
    _sum_norm_kernel[(rows,)](
        parts,
        residual,
        gain,
        out,
        total,
        eps,
        K=width,
        COUNT=count,
        BLOCK=block,
        PDL=pdl,
        num_warps=max(1, min(8, block // 512)),
        launch_pdl=pdl,
    )
    return out, total
