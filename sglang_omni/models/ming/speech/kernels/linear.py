"""Linear layers for few rows, fused with the activation or the addition after.

For few rows a product is bound by reading its weight and by starting kernels. So a normalisation
is no kernel of its own: the product before it notes the sums of squares and multiplies by the gain,
and the product after it divides by the root. (Computing a norm whole in front of the product, which
repeats it in every tile, took three times as long on an H200.) The plain form is `LibraryOps` in
`sglang_omni/models/ming/speech/fast/ops.py`.
"""

from dataclasses import dataclass

import torch
import triton
import triton.language as tl
from torch import Tensor

from sglang_omni.kernels.pdl import LINE, prefetch_lines, wait_for_inputs
from sglang_omni.kernels.split_k import MAX_TILES, Workspace, reduce_split_k
from sglang_omni.models.ming.speech.kernels.product import (
    carry_norm,
    gelu_tanh,
    multiply,
    read_row,
    read_squares,
    root_scale,
)


@triton.jit
def _linear_kernel(  # type: ignore[no-untyped-def]
    x,
    weight,
    bias,
    out,
    squares,
    gain,
    scaled,
    squares_out,
    partial,
    arrived,
    eps,
    M,
    N,
    K: tl.constexpr,
    PARTS: tl.constexpr,
    PARTS_PAD: tl.constexpr,
    CARRY: tl.constexpr,
    BIAS: tl.constexpr,
    GELU: tl.constexpr,
    GATED: tl.constexpr,
    ADD: tl.constexpr,
    SPLIT: tl.constexpr,
    BM: tl.constexpr,
    BN: tl.constexpr,
    BK: tl.constexpr,
    LINES: tl.constexpr,
    LINE: tl.constexpr,
    PRECISION: tl.constexpr,
    CHAINED: tl.constexpr,
):
    """One tile [BM, BN] of the output, or one of SPLIT shares of its sum over K."""
    tile_n, tile_m, share = tl.program_id(0), tl.program_id(1), tl.program_id(2)
    dtype = x.dtype.element_ty
    rows = tile_m * BM + tl.arange(0, BM)
    cols = tile_n * BN + tl.arange(0, BN)
    row_in, col_in = rows < M, cols < N
    at = rows[:, None] * N + cols[None, :]
    inside = row_in[:, None] & col_in[None, :]
    span: tl.constexpr = ((K + BK - 1) // BK + SPLIT - 1) // SPLIT * BK
    # Weights, biases and gains depend on nothing: they travel while the kernel ahead still runs.
    if BIAS:
        offset = read_row(bias, cols, col_in)
    if CARRY:
        next_gain = read_row(gain, cols, col_in)
    if CHAINED:
        lines = tl.minimum(share * span + tl.arange(0, LINES) * LINE, K - 1)
        first = tl.minimum(cols, N - 1)[:, None] * K + lines[None, :]
        prefetch_lines(weight + first)
        if GATED:
            prefetch_lines(weight + N * K + first)
    wait_for_inputs(CHAINED)
    if PARTS > 0:
        parts = read_squares(squares, rows, row_in, PARTS, PARTS_PAD)
    if ADD:
        # Only the program that ends the sum of this tile writes it, after all others have come.
        before = tl.load(out + at, mask=inside, other=0.0).to(tl.float32)
    acc, gated = multiply(
        x, weight, rows, row_in, cols, share * span, N, K, span, GATED, BM, BN, BK, PRECISION
    )
    finish = True
    if SPLIT > 1:
        tile = arrived + tile_m * tl.num_programs(0) + tile_n
        acc, finish = reduce_split_k(acc, partial, tile, at, inside, share, M * N, SPLIT, BM, BN)
    if finish:
        if PARTS > 0:
            scale = root_scale(parts, K, eps)
            acc = acc * scale
            gated = gated * scale
        if BIAS:
            acc += offset[None, :]
        if GELU:
            acc = gelu_tanh(acc)
        if GATED:
            acc = acc * tl.sigmoid(acc) * gated
        if ADD:
            acc += before
        made = tl.where(inside, acc, 0.0).to(dtype)
        tl.store(out + at, made, mask=inside)
        if CARRY:
            carry_norm(
                made,
                next_gain,
                scaled,
                squares_out,
                at,
                inside,
                rows,
                row_in,
                tile_n,
                tl.num_programs(0),
            )


@dataclass(frozen=True)
class LinearTile:
    """How a product is cut: output tile, depth of a step, shares of the sum, warps, stages."""

    rows: int
    cols: int
    depth: int
    split: int = 1
    warps: int = 4
    stages: int = 4


@dataclass(frozen=True)
class FusedNormInput:
    """What a normalisation needs of rows x [M, N], noted by the kernel that made them.

    `scaled` [M, N] is x times the gain of the norm to come; the parts [M, parts] float32 of
    `squares` sum to the squares of a row. The rest of the norm is one number per row, which
    commutes with the product after it.
    """

    scaled: Tensor
    squares: Tensor
    eps: float


def linear(
    x: Tensor | FusedNormInput,
    weight: Tensor,
    out: Tensor,
    tile: LinearTile,
    space: Workspace,
    *,
    bias: Tensor | None = None,
    gelu: bool = False,
    gated: bool = False,
    add: bool = False,
    then: tuple[Tensor, float] | None = None,
    chained: bool = False,
) -> FusedNormInput | None:
    """`out` = act(x weight^T + bias), or `out` += that where `add`.

    x [M, K] and out [M, N] are contiguous, weight [N, K]; x may be the carried norm of rows.
    `gated` reads weight [2 N, K] as gate rows and up rows and computes silu(gate) * up. `then`, the
    gain [N] and epsilon of a norm that follows, has it carried. Where `chained`, weight, bias and
    gain are read before the kernel ahead has ended, and so must not be what it makes.
    """
    rows = x.scaled if isinstance(x, FusedNormInput) else x
    squares = x.squares if isinstance(x, FusedNormInput) else None
    (m, k), n = rows.shape, out.shape[1]
    assert rows.is_contiguous() and weight.is_contiguous() and out.is_contiguous()
    assert weight.shape == ((2 if gated else 1) * n, k) and out.shape[0] == m
    grid = (triton.cdiv(n, tile.cols), triton.cdiv(m, tile.rows), tile.split)
    if tile.split > 1:
        assert not gated
        assert tile.split * m * n <= space.partial.numel() and grid[0] * grid[1] <= MAX_TILES
    carried = None
    if then is not None:
        sums = torch.empty(m, grid[0], device=out.device, dtype=torch.float32)
        carried = FusedNormInput(torch.empty_like(out), sums, then[1])
    parts = 0 if squares is None else squares.shape[1]
    _linear_kernel[grid](
        rows,
        weight,
        weight if bias is None else bias,
        out,
        weight if squares is None else squares,
        weight if then is None else then[0],
        weight if carried is None else carried.scaled,
        weight if carried is None else carried.squares,
        space.partial,
        space.arrived,
        x.eps if isinstance(x, FusedNormInput) else 0.0,
        m,
        n,
        K=k,
        PARTS=parts,
        PARTS_PAD=triton.next_power_of_2(max(parts, 1)),
        CARRY=carried is not None,
        BIAS=bias is not None,
        GELU=gelu,
        GATED=gated,
        ADD=add,
        SPLIT=tile.split,
        BM=tile.rows,
        BN=tile.cols,
        BK=tile.depth,
        LINES=triton.next_power_of_2(triton.cdiv(k, tile.split * LINE)),
        LINE=LINE,
        PRECISION="ieee" if rows.dtype == torch.float32 else "tf32",
        CHAINED=chained,
        num_warps=tile.warps,
        num_stages=tile.stages,
        launch_pdl=chained,
    )
    return carried


@triton.jit
def _carry_kernel(  # type: ignore[no-untyped-def]
    x,
    gain,
    scaled,
    squares,
    K: tl.constexpr,
    BLOCK: tl.constexpr,
    CHAINED: tl.constexpr,
):
    wait_for_inputs(CHAINED)
    row = tl.program_id(0).to(tl.int64)
    ks = tl.arange(0, BLOCK)
    inside = ks < K
    wide = tl.load(x + row * K + ks, mask=inside, other=0.0).to(tl.float32)
    g = tl.load(gain + ks, mask=inside, other=0.0).to(tl.float32)
    tl.store(scaled + row * K + ks, (wide * g).to(scaled.dtype.element_ty), mask=inside)
    tl.store(squares + row, tl.sum(wide * wide, axis=0))


def carry(x: Tensor, gain: Tensor, eps: float, *, chained: bool = False) -> FusedNormInput:
    """What a norm of the rows of x [M, K] needs, for rows that no `linear` made."""
    rows, width = x.shape
    assert x.is_contiguous()
    sums = torch.empty(rows, 1, device=x.device, dtype=torch.float32)
    carried = FusedNormInput(torch.empty_like(x), sums, eps)
    _carry_kernel[(rows,)](
        x,
        gain,
        carried.scaled,
        carried.squares,
        K=width,
        BLOCK=triton.next_power_of_2(width),
        CHAINED=chained,
        num_warps=4,
        launch_pdl=chained,
    )
    return carried
