"""The product of one row with an FP8 weight, for a decode step of one client.

Such a product is bound by reading the weight, and does not need the row until then. So each program
reads all of its weight into registers while the kernel before still runs, waits for the row, and
multiplies without tensor cores, which would need sixteen rows. Registers of an H200 hold 33 MB, and
the weights of attention have 17 and 21 MB. The plain form is `fp8.dequantize_weight` and a product.
"""

from dataclasses import dataclass

import triton
import triton.language as tl
from torch import Tensor

from sglang_omni.kernels.pdl import wait_for_inputs
from sglang_omni.models.ming.thinker.fp8_layout import BLOCK

MAX_DEPTH = 4096
"""The longest row; a program has all of it."""


@dataclass(frozen=True)
class OneRowTile:
    """Outputs of a program, its warps, and the registers of a thread."""

    outputs: int
    warps: int = 4
    registers: int = 128


TILE = OneRowTile(8)


@triton.jit
def _one_row_kernel(  # type: ignore[no-untyped-def]
    x,
    weight,
    scale,
    out,
    K: tl.constexpr,
    BLOCK: tl.constexpr,
    OUTPUTS: tl.constexpr,
    PDL: tl.constexpr,
):
    """Compute OUTPUTS elements of the product."""
    outputs = tl.program_id(0) * OUTPUTS + tl.arange(0, OUTPUTS)
    depth = tl.arange(0, K)
    # Both are constant.
    rows = tl.load(weight + outputs[:, None] * K + depth[None, :])
    # A program is in one row of weight blocks.
    scales = tl.load(scale + tl.program_id(0) * OUTPUTS // BLOCK * (K // BLOCK) + depth // BLOCK)
    wait_for_inputs(PDL)
    scaled = tl.load(x + depth).to(tl.float32) * scales
    product = tl.sum(rows.to(tl.float32) * scaled[None, :], axis=1)
    tl.store(out + outputs, product.to(out.dtype.element_ty))


def supports_one_row(rows: int, outputs: int, depth: int) -> bool:
    """Return whether the kernel takes a product of so many rows, outputs and elements of a row."""
    return (
        rows == 1
        and outputs % BLOCK == 0
        and depth <= MAX_DEPTH
        and depth == triton.next_power_of_2(depth)
    )


def multiply_one_row(
    x: Tensor,
    weight: Tensor,
    scale: Tensor,
    out: Tensor,
    tile: OneRowTile = TILE,
    pdl: bool = False,
) -> Tensor:
    """Write x [1, K] times the transposed FP8 weight [N, K] to `out` [1, N], and return it.

    Args:
        x: The row, in any float dtype.
        weight: float8_e4m3fn [N, K].
        scale: float32 [N / 128, K / 128].
        out: Where the product goes, in any float dtype.
        tile: Sizes of the programs.
        pdl: Launch with programmatic dependent launch. The kernel before must not write the weight.
    """
    outputs, depth = weight.shape
    assert supports_one_row(len(x), outputs, depth)
    assert BLOCK % tile.outputs == 0
    _one_row_kernel[(outputs // tile.outputs,)](
        x,
        weight,
        scale,
        out,
        K=depth,
        BLOCK=BLOCK,
        OUTPUTS=tile.outputs,
        PDL=pdl,
        num_warps=tile.warps,
        maxnreg=tile.registers,
        launch_pdl=pdl,
    )
    return out
