"""Matrix products of the small batch of a decode step with FP8 weights.

Small batches are bound by reading the weight once. SGLang quantizes the rows in a kernel of its
own, copies the scales and pads the rows to the tile height. Here, up to 32 rows stay in their
dtype, and the weight is converted to bfloat16 block by block as it is loaded. This is also more
exact, as only the weight is rounded. The plain form is `fp8.dequantize_weight` and a product.

With more rows, every tile reads all of them, and the rows dominate the reads. They are then
quantized to FP8, as SGLang does.
"""

from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import cache

import torch
import triton
import triton.language as tl
from torch import Tensor

from sglang_omni.kernels.pdl import wait_for_inputs
from sglang_omni.kernels.split_k import MAX_TILES, Workspace, reduce_split_k
from sglang_omni.models.ming.thinker.fp8_layout import BLOCK
from sglang_omni.models.ming.thinker.fp8_triton import quantize_rows
from sglang_omni.models.ming.thinker.one_row_gemm_triton import multiply_one_row, supports_one_row

MAX_ROWS = 64
"""Maximum batch size; with more rows, SGLang's FP8 kernels are faster."""
WORKSPACE_SIZE = 1 << 22
"""float32 elements for split-K sums: four times the need of the qkv projection of 64 rows."""


@dataclass(frozen=True)
class SmallBatchTile:
    """Tiling of a product: columns of a tile, splits of the sum (split-K), warps and stages.

    `swapped` makes the weight the first operand: groups of four warps can then share the rows in
    shared memory, which pays for larger batches. Otherwise the weight is the second operand and is
    loaded to registers in wider words. `fp8` quantizes the rows in a kernel before the product. As
    every tile reads all rows, this pays for the largest batches.
    """

    cols: int
    split: int
    warps: int = 4
    stages: int = 4
    swapped: bool = False
    fp8: bool = False


# By tile height in rows; measured by `benchmarks.thinker.tune_small_batch_gemm` on an H200.
TILES = {
    16: SmallBatchTile(32, 4, warps=2),
    32: SmallBatchTile(64, 4, stages=3, swapped=True),
    64: SmallBatchTile(64, 3, fp8=True),
}
# From this many outputs on there are enough tiles without split-K.
MIN_UNSPLIT_OUTPUTS = 8192
# The same of the output head, whose tiles fill a GPU at any width: wide ones read rows less often.
# Chosen by the reads in flight and the instructions of the compiled kernels; not measured yet.
HEAD_TILES = {
    16: SmallBatchTile(128, 1, stages=3),
    32: SmallBatchTile(128, 1, warps=8, stages=3, swapped=True),
    64: SmallBatchTile(128, 1, fp8=True),
}
MIN_HEAD_OUTPUTS = 1 << 15
"""From this many outputs on a matrix is tiled like the head."""


def select_tile(rows: int, outputs: int) -> SmallBatchTile:
    """Return the tiling for a number of rows and of outputs."""
    height = max(16, triton.next_power_of_2(rows))
    if outputs >= MIN_HEAD_OUTPUTS:
        return HEAD_TILES[height]
    tile = TILES[height]
    return tile if outputs < MIN_UNSPLIT_OUTPUTS else replace(tile, split=1)


@triton.jit
def _multiply_blocks(  # type: ignore[no-untyped-def]
    x,
    x_scales,
    weight,
    scales,
    rows,
    row_mask,
    cols,
    first,
    last,
    K: tl.constexpr,
    BLOCK: tl.constexpr,
    SWAPPED: tl.constexpr,
    ROWS_FP8: tl.constexpr,
):
    """Sum the blocks `first` .. `last` - 1 over K: [rows, cols], or [cols, rows] where SWAPPED.

    `x_scales` holds one scale per row and block, and is used only with ROWS_FP8.
    """
    depth = tl.arange(0, BLOCK)
    BM: tl.constexpr = rows.shape[0]
    BN: tl.constexpr = cols.shape[0]
    acc = tl.zeros((BN, BM) if SWAPPED else (BM, BN), tl.float32)
    # A tile lies within one weight block, so a step has one weight scale. Scales are loaded one
    # step ahead, so that they do not stall the step.
    last_block: tl.constexpr = K // BLOCK - 1
    x_scale_ptrs = x_scales + rows * (K // BLOCK)
    start = tl.minimum(first, last_block)
    scale = tl.load(scales + start)
    if ROWS_FP8:
        scale *= tl.load(x_scale_ptrs + start, mask=row_mask, other=0.0)
    for block in range(first, last):
        offs = block * BLOCK + depth
        next_block = tl.minimum(block + 1, last_block)
        next_scale = tl.load(scales + next_block)
        weight_tile = tl.load(weight + cols[:, None] * K + offs[None, :])
        if ROWS_FP8:
            next_scale *= tl.load(x_scale_ptrs + next_block, mask=row_mask, other=0.0)
        else:
            # Via float32: direct conversion to bfloat16 has a quarter of the throughput.
            weight_tile = weight_tile.to(tl.float32).to(x.dtype.element_ty)
        if SWAPPED:
            x_tile = tl.load(
                x + rows[None, :] * K + offs[:, None], mask=row_mask[None, :], other=0.0
            )
            product = tl.dot(weight_tile, x_tile)
            acc += product * (scale[None, :] if ROWS_FP8 else scale)
        else:
            x_tile = tl.load(
                x + rows[:, None] * K + offs[None, :], mask=row_mask[:, None], other=0.0
            )
            product = tl.dot(x_tile, tl.trans(weight_tile))
            acc += product * (scale[:, None] if ROWS_FP8 else scale)
        scale = next_scale
    return acc


@triton.jit
def _small_batch_kernel(  # type: ignore[no-untyped-def]
    x,
    x_scales,
    weight,
    scale,
    out,
    partial,
    arrived,
    M,
    N,
    K: tl.constexpr,
    BLOCK: tl.constexpr,
    SPLIT: tl.constexpr,
    SWAPPED: tl.constexpr,
    ROWS_FP8: tl.constexpr,
    BM: tl.constexpr,
    BN: tl.constexpr,
    PDL: tl.constexpr,
):
    """Compute one output tile, or one of SPLIT partial sums over K."""
    tile, split = tl.program_id(0), tl.program_id(1)
    blocks: tl.constexpr = K // BLOCK
    blocks_per_split: tl.constexpr = (blocks + SPLIT - 1) // SPLIT
    # The last splits may be shorter or empty.
    first = split * blocks_per_split
    last = tl.minimum(first + blocks_per_split, blocks)
    cols, rows = tile * BN + tl.arange(0, BN), tl.arange(0, BM)
    row_mask = rows < M
    # No prefetch of the weight before this: it slowed the reads of the previous kernel.
    wait_for_inputs(PDL)
    scale_ptrs = scale + tile * BN // BLOCK * blocks
    acc = _multiply_blocks(
        x,
        x_scales,
        weight,
        scale_ptrs,
        rows,
        row_mask,
        cols,
        first,
        last,
        K,
        BLOCK,
        SWAPPED,
        ROWS_FP8,
    )
    # Only rows can be out of range, as tiles divide N; the mask has the shape of the tile.
    if SWAPPED:
        offs = rows[None, :] * N + cols[:, None]
        mask = row_mask[None, :] & (cols[:, None] < N)
    else:
        offs = rows[:, None] * N + cols[None, :]
        mask = row_mask[:, None] & (cols[None, :] < N)
    is_last = True
    if SPLIT > 1:
        tile_rows: tl.constexpr = BN if SWAPPED else BM
        tile_cols: tl.constexpr = BM if SWAPPED else BN
        acc, is_last = reduce_split_k(
            acc, partial, arrived + tile, offs, mask, split, M * N, SPLIT, tile_rows, tile_cols
        )
    if is_last:
        tl.store(out + offs, acc.to(out.dtype.element_ty), mask=mask)


def small_batch_linear(
    x: Tensor,
    weight: Tensor,
    scale: Tensor,
    workspace: Workspace,
    tile: SmallBatchTile | None = None,
    pdl: bool = False,
    out: Tensor | None = None,
) -> Tensor:
    """Return x [rows, K] times the transposed FP8 weight [N, K]: [rows, N] in the dtype of x.

    Args:
        x: At most `MAX_ROWS` rows; a tile with `fp8` quantizes them too.
        weight: float8_e4m3fn [N, K].
        scale: float32 [N / 128, K / 128].
        workspace: Memory for the parts of a split sum.
        tile: Sizes of the tiles; None for those that suit the number of rows, or for the kernel
            of one row.
        pdl: Launch with programmatic dependent launch.
        out: Where the product goes, in any float dtype; None for new memory.
    """
    (m, k), n = x.shape, weight.shape[0]
    assert m <= MAX_ROWS
    # Offsets are of 32 bits.
    assert n * k < 1 << 31
    if out is None:
        out = torch.empty(m, n, dtype=x.dtype, device=x.device)
    assert out.shape == (m, n)
    assert out.is_contiguous()
    assert x.is_contiguous()
    assert weight.is_contiguous()
    assert scale.is_contiguous()
    if tile is None and n < MIN_HEAD_OUTPUTS and supports_one_row(m, n, k):
        return multiply_one_row(x, weight, scale, out, pdl=pdl)
    tile = tile or select_tile(m, n)
    assert n % BLOCK == 0
    assert k % BLOCK == 0
    assert BLOCK % tile.cols == 0
    if tile.split > 1:
        assert tile.split * m * n <= workspace.partial.numel()
        assert n // tile.cols <= MAX_TILES
    rows, row_scales = quantize_rows(x, pdl) if tile.fp8 else (x, scale)
    _small_batch_kernel[(n // tile.cols, tile.split)](
        rows,
        row_scales,
        weight,
        scale,
        out,
        workspace.partial,
        workspace.arrived,
        m,
        n,
        K=k,
        BLOCK=BLOCK,
        SPLIT=tile.split,
        SWAPPED=tile.swapped,
        ROWS_FP8=tile.fp8,
        BM=max(16, triton.next_power_of_2(m)),
        BN=tile.cols,
        PDL=pdl,
        num_warps=tile.warps,
        num_stages=tile.stages,
        launch_pdl=pdl,
    )
    return out


@cache
def get_workspace(device: torch.device) -> Workspace:
    """Return the workspace that all products of a model share; its steps run on one stream."""
    return Workspace(WORKSPACE_SIZE, device)


LinearFunction = Callable[..., Tensor]


def wrap_linear(library: LinearFunction, workspace: Workspace) -> LinearFunction:
    """Return a function of SGLang's signature: this kernel for small batches, else `library`."""

    def linear(
        input: Tensor,
        weight: Tensor,
        block_size: list[int],
        weight_scale: Tensor,
        input_scale: Tensor | None = None,
        bias: Tensor | None = None,
    ) -> Tensor:
        rows = input.flatten(0, -2)
        if len(rows) > MAX_ROWS or len(rows) == 0 or bias is not None or input_scale is not None:
            return library(
                input=input,
                weight=weight,
                block_size=block_size,
                weight_scale=weight_scale,
                input_scale=input_scale,
                bias=bias,
            )
        out = small_batch_linear(rows, weight, weight_scale, workspace, pdl=True)
        return out.unflatten(0, input.shape[:-1])

    return linear
