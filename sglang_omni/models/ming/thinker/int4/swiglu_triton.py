"""SwiGLU between the four-bit expert products; it also adds the partial sums of the first one."""

import torch
import triton
import triton.language as tl
from torch import Tensor

from sglang_omni.kernels.pdl import wait_for_inputs

COLUMNS_PER_PROGRAM = 512


@triton.jit
def _swiglu_parts_kernel(  # type: ignore[no-untyped-def]
    gate_up, out, WIDTH: tl.constexpr, PARTS: tl.constexpr, COLUMNS: tl.constexpr, PDL: tl.constexpr
):
    """Compute some columns of one row."""
    row = tl.program_id(0).to(tl.int64)
    cols = tl.program_id(1) * COLUMNS + tl.arange(0, COLUMNS)
    mask = cols < WIDTH
    wait_for_inputs(PDL)
    gate = tl.zeros((COLUMNS,), tl.float32)
    up = tl.zeros((COLUMNS,), tl.float32)
    for part in tl.static_range(PARTS):
        part_ptrs = gate_up + (row * PARTS + part) * 2 * WIDTH + cols
        gate += tl.load(part_ptrs, mask=mask, other=0.0).to(tl.float32)
        up += tl.load(part_ptrs + WIDTH, mask=mask, other=0.0).to(tl.float32)
    activated = gate / (1.0 + tl.exp(-gate)) * up
    tl.store(out + row * WIDTH + cols, activated.to(out.dtype.element_ty), mask=mask)


def swiglu_parts(gate_up: Tensor, dtype: torch.dtype, pdl: bool = False) -> Tensor:
    """Add partial sums [rows, parts, 2 * width] in float32 and return silu(gate) * up in `dtype`.

    The result is [rows, width].
    """
    rows, parts, width = gate_up.shape[0], gate_up.shape[1], gate_up.shape[2] // 2
    assert gate_up.is_contiguous()
    out = torch.empty(rows, width, dtype=dtype, device=gate_up.device)
    columns = min(COLUMNS_PER_PROGRAM, triton.next_power_of_2(width))
    _swiglu_parts_kernel[(rows, triton.cdiv(width, columns))](
        gate_up,
        out,
        WIDTH=width,
        PARTS=parts,
        COLUMNS=columns,
        PDL=pdl,
        num_warps=4,
        launch_pdl=pdl,
    )
    return out
