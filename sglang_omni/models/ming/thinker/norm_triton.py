"""Sum expert outputs, add them to the residual stream and normalise it, for small batches.

SGLang has one kernel for the sum and one for the rest, and each costs more to start than to run.
The plain form is `decode_moe_triton.sum_experts` and SGLang's norm.
"""

import torch
import triton
import triton.language as tl
from torch import Tensor

from sglang_omni.kernels.pdl import wait_for_inputs
from sglang_omni.kernels.registers import MAX_REGISTERS


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
    """Compute one row."""
    row, cols = tl.program_id(0), tl.arange(0, BLOCK)
    mask = cols < K
    # The gain is constant: load it while the previous kernel still runs.
    gain_row = tl.load(gain + cols, mask=mask, other=0.0).to(tl.float32)
    wait_for_inputs(PDL)
    offs = row * K + cols
    total = tl.load(residual + offs, mask=mask, other=0.0).to(tl.float32)
    for part in tl.static_range(COUNT):
        part_row = tl.load(parts + (row * COUNT + part) * K + cols, mask=mask, other=0.0)
        total += part_row.to(tl.float32)
    tl.store(total_out + offs, total.to(total_out.dtype.element_ty), mask=mask)
    scale = tl.rsqrt(tl.sum(total * total, axis=0) / K + eps)
    tl.store(out + offs, (total * scale * gain_row).to(out.dtype.element_ty), mask=mask)


def sum_norm(
    parts: Tensor, residual: Tensor, gain: Tensor, eps: float, *, pdl: bool = False
) -> tuple[Tensor, Tensor]:
    """Sum residual [rows, K] and parts [rows, count, K]; return its RMSNorm and the sum.

    `gain` [K] is the gain of the norm. Computes in float32; each result is rounded once.
    """
    rows, count, width = parts.shape
    assert parts.is_contiguous()
    assert residual.is_contiguous()
    assert gain.is_contiguous()
    assert residual.shape == (rows, width)
    assert parts.dtype == residual.dtype
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
        maxnreg=MAX_REGISTERS,
        launch_pdl=pdl,
    )
    return out, total
