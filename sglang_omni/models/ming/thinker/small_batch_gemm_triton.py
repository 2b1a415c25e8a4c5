"""Products of a decode step's few rows with weights in eight bits.

So few rows are bound by reading the weight, once. SGLang's way brings rows to eight bits in a
kernel of its own, copies the scales and pads rows to the height of a tile; here up to 32 rows stay
as they are, and the weight becomes bfloat16 on its way, block by block. That is the finer
arithmetic as well: only the weight is rounded. The plain form is `fp8.dequantise` and a product.

With more rows it is they that are read most, by every tile: they come to eight bits as SGLang's.
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
from sglang_omni.models.ming.thinker.fp8_triton import quantise_rows

MOST_ROWS = 64
"""With more, SGLang's kernels in eight bits are faster."""
SCRATCH = 1 << 22
"""Numbers in float32 for shared sums: four times what queries, keys and values of 64 rows take."""


@dataclass(frozen=True)
class SmallBatchTile:
    """How a product is cut: columns of a tile, shares of the sum, warps, stages.

    `swapped` has the weight as the first operand: warps in groups of four can then share rows in
    shared memory, which pays with many of them. Otherwise weights are the second operand and go
    to registers in wider words. `fp8` brings the rows to eight bits too, in a kernel ahead:
    as every tile reads all rows, that pays with the most of them.
    """

    cols: int
    split: int
    warps: int = 4
    stages: int = 4
    swapped: bool = False
    fp8: bool = False


# By the rows that a tile has: found by `benchmarks.thinker.tune_small_batch_gemm` on an H200.
TILES = {
    16: SmallBatchTile(32, 4, warps=2),
    32: SmallBatchTile(64, 4, stages=3, swapped=True),
    64: SmallBatchTile(64, 3, fp8=True),
}
# So many columns make tiles enough without sharing sums.
WIDE = 8192


def tile_for(rows: int, outputs: int) -> SmallBatchTile:
    """How rows times a weight of so many outputs are cut."""
    tile = TILES[max(16, triton.next_power_of_2(rows))]
    return tile if outputs < WIDE else replace(tile, split=1)


@triton.jit
def _product_of_shares(  # type: ignore[no-untyped-def]
    x,
    x_scales,
    weight,
    scales,
    rows,
    row_in,
    cols,
    first,
    last,
    K: tl.constexpr,
    BLOCK: tl.constexpr,
    SWAPPED: tl.constexpr,
    EIGHT_BITS: tl.constexpr,
):
    """Blocks `first` to `last` of the sums over K: [rows, cols], or [cols, rows] where SWAPPED.
    Only rows of EIGHT_BITS have scales, one for each block."""
    depth = tl.arange(0, BLOCK)
    BM: tl.constexpr = rows.shape[0]
    BN: tl.constexpr = cols.shape[0]
    acc = tl.zeros((BN, BM) if SWAPPED else (BM, BN), tl.float32)
    # A weight's block is as high as or higher than a tile: one scale for all of a step. Scales are
    # read a step ahead, for nothing else of a step would wait for memory.
    most: tl.constexpr = K // BLOCK - 1
    x_scale_at = x_scales + rows * (K // BLOCK)
    start = tl.minimum(first, most)
    factor = tl.load(scales + start)
    if EIGHT_BITS:
        factor *= tl.load(x_scale_at + start, mask=row_in, other=0.0)
    for block in range(first, last):
        at = block * BLOCK + depth
        next_block = tl.minimum(block + 1, most)
        following = tl.load(scales + next_block)
        w = tl.load(weight + cols[:, None] * K + at[None, :])
        if EIGHT_BITS:
            following *= tl.load(x_scale_at + next_block, mask=row_in, other=0.0)
        else:
            # By way of float32: straight to bfloat16 a card converts a quarter as many at a time.
            w = w.to(tl.float32).to(x.dtype.element_ty)
        if SWAPPED:
            held = tl.load(x + rows[None, :] * K + at[:, None], mask=row_in[None, :], other=0.0)
            product = tl.dot(w, held)
            acc += product * (factor[None, :] if EIGHT_BITS else factor)
        else:
            held = tl.load(x + rows[:, None] * K + at[None, :], mask=row_in[:, None], other=0.0)
            product = tl.dot(held, tl.trans(w))
            acc += product * (factor[:, None] if EIGHT_BITS else factor)
        factor = following
    return acc


@triton.jit
def _few_rows_kernel(  # type: ignore[no-untyped-def]
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
    EIGHT_BITS: tl.constexpr,
    BM: tl.constexpr,
    BN: tl.constexpr,
    PDL: tl.constexpr,
):
    """One tile of the output, or one of SPLIT shares of its sum over K."""
    tile, share = tl.program_id(0), tl.program_id(1)
    blocks: tl.constexpr = K // BLOCK
    span: tl.constexpr = (blocks + SPLIT - 1) // SPLIT
    # The last shares may be shorter, or empty.
    first = share * span
    last = tl.minimum(first + span, blocks)
    cols, rows = tile * BN + tl.arange(0, BN), tl.arange(0, BM)
    row_in = rows < M
    # The weight is not asked for before this: it was in the way of what the kernel ahead reads.
    wait_for_inputs(PDL)
    scales = scale + tile * BN // BLOCK * blocks
    acc = _product_of_shares(
        x, x_scales, weight, scales, rows, row_in, cols, first, last, K, BLOCK, SWAPPED, EIGHT_BITS
    )
    # Only rows can be missing, for tiles divide N; the mask takes the tile's shape.
    if SWAPPED:
        place = rows[None, :] * N + cols[:, None]
        inside = row_in[None, :] & (cols[:, None] < N)
    else:
        place = rows[:, None] * N + cols[None, :]
        inside = row_in[:, None] & (cols[None, :] < N)
    finish = True
    if SPLIT > 1:
        high: tl.constexpr = BN if SWAPPED else BM
        wide: tl.constexpr = BM if SWAPPED else BN
        acc, finish = reduce_split_k(
            acc, partial, arrived + tile, place, inside, share, M * N, SPLIT, high, wide
        )
    if finish:
        tl.store(out + place, acc.to(out.dtype.element_ty), mask=inside)


def few_rows_linear(
    x: Tensor,
    weight: Tensor,
    scale: Tensor,
    space: Workspace,
    tile: SmallBatchTile | None = None,
    pdl: bool = False,
) -> Tensor:
    """x [rows, K] times the transpose of a quantised weight [N, K]: [rows, N] in x's dtype.

    `weight` is float8_e4m3fn, `scale` [N / 128, K / 128] float32. At most `MOST_ROWS` rows, which
    a tile of `fp8` rounds as well. Where `pdl`, this starts before the kernel in front
    has ended.
    """
    (m, k), n = x.shape, weight.shape[0]
    assert m <= MOST_ROWS
    tile = tile or tile_for(m, n)
    assert n % BLOCK == 0 and k % BLOCK == 0 and BLOCK % tile.cols == 0
    assert x.is_contiguous() and weight.is_contiguous() and scale.is_contiguous()
    assert tile.split * m * n <= space.partial.numel() and n // tile.cols <= MAX_TILES
    out = torch.empty(m, n, dtype=x.dtype, device=x.device)
    rows, row_scales = quantise_rows(x, pdl) if tile.fp8 else (x, scale)
    _few_rows_kernel[(n // tile.cols, tile.split)](
        rows,
        row_scales,
        weight,
        scale,
        out,
        space.partial,
        space.arrived,
        m,
        n,
        K=k,
        BLOCK=BLOCK,
        SPLIT=tile.split,
        SWAPPED=tile.swapped,
        EIGHT_BITS=tile.fp8,
        BM=max(16, triton.next_power_of_2(m)),
        BN=tile.cols,
        PDL=pdl,
        num_warps=tile.warps,
        num_stages=tile.stages,
        launch_pdl=pdl,
    )
    return out


@cache
def scratch(device: torch.device) -> Workspace:
    """What all products of a model share: its steps run on one stream, one after the other."""
    return Workspace(SCRATCH, device)


Product = Callable[..., Tensor]


def few_rows_first(library: Product, space: Workspace) -> Product:
    """A product of SGLang's signature: ours for a decode step's rows, the library's for more."""

    def product(
        input: Tensor,
        weight: Tensor,
        block_size: list[int],
        weight_scale: Tensor,
        input_scale: Tensor | None = None,
        bias: Tensor | None = None,
    ) -> Tensor:
        rows = input.flatten(0, -2)
        if len(rows) > MOST_ROWS or len(rows) == 0 or bias is not None or input_scale is not None:
            return library(
                input=input,
                weight=weight,
                block_size=block_size,
                weight_scale=weight_scale,
                input_scale=input_scale,
                bias=bias,
            )
        out = few_rows_linear(rows, weight, weight_scale, space, pdl=True)
        return out.unflatten(0, input.shape[:-1])

    return product
