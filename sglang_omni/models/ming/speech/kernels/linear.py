"""Linear layers for small batches, fused with the activation or the residual addition.

With few rows a matrix product is bound by reading its weight and by kernel launches. So a norm is
not a kernel of its own: the product before it stores the sums of squares and multiplies by the
gain, and the product after it divides by the root. The plain form is `LibraryOps` in
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
    compute_inverse_rms,
    gelu_tanh,
    load_row,
    load_squares,
    multiply_tile,
    store_norm_input,
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
    STORE_NORM: tl.constexpr,
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
    PDL: tl.constexpr,
):
    """Compute one output tile [BM, BN], or one of SPLIT partial sums over K (split-K)."""
    tile_n, tile_m, split = tl.program_id(0), tl.program_id(1), tl.program_id(2)
    dtype = x.dtype.element_ty
    rows = tile_m * BM + tl.arange(0, BM)
    cols = tile_n * BN + tl.arange(0, BN)
    row_mask, col_mask = rows < M, cols < N
    offs = rows[:, None] * N + cols[None, :]
    mask = row_mask[:, None] & col_mask[None, :]
    span: tl.constexpr = ((K + BK - 1) // BK + SPLIT - 1) // SPLIT * BK
    # Weights, biases and gains are constant: load them while the previous kernel still runs.
    if BIAS:
        bias_row = load_row(bias, cols, col_mask)
    if STORE_NORM:
        next_gain = load_row(gain, cols, col_mask)
    if PDL:
        lines = tl.minimum(split * span + tl.arange(0, LINES) * LINE, K - 1)
        line_offs = tl.minimum(cols, N - 1)[:, None] * K + lines[None, :]
        prefetch_lines(weight + line_offs)
        if GATED:
            prefetch_lines(weight + N * K + line_offs)
    wait_for_inputs(PDL)
    if PARTS > 0:
        parts = load_squares(squares, rows, row_mask, PARTS, PARTS_PAD)
    if ADD:
        # Only the program that finishes the sum of this tile writes it, after all others arrived.
        residual = tl.load(out + offs, mask=mask, other=0.0).to(tl.float32)
    acc, gated = multiply_tile(
        x, weight, rows, row_mask, cols, split * span, N, K, span, GATED, BM, BN, BK, PRECISION
    )
    is_last = True
    if SPLIT > 1:
        tile = arrived + tile_m * tl.num_programs(0) + tile_n
        acc, is_last = reduce_split_k(acc, partial, tile, offs, mask, split, M * N, SPLIT, BM, BN)
    if is_last:
        if PARTS > 0:
            scale = compute_inverse_rms(parts, K, eps)
            acc = acc * scale
            gated = gated * scale
        if BIAS:
            acc += bias_row[None, :]
        if GELU:
            acc = gelu_tanh(acc)
        if GATED:
            acc = acc * tl.sigmoid(acc) * gated
        if ADD:
            acc += residual
        result = tl.where(mask, acc, 0.0).to(dtype)
        tl.store(out + offs, result, mask=mask)
        if STORE_NORM:
            store_norm_input(
                result,
                next_gain,
                scaled,
                squares_out,
                offs,
                mask,
                rows,
                row_mask,
                tile_n,
                tl.num_programs(0),
            )


@dataclass(frozen=True)
class LinearTile:
    """Tiling of a matrix product.

    Output tile `rows` x `cols`, `depth` of a step over K, `split` partial sums (split-K), and
    Triton's `num_warps` and `num_stages`.
    """

    rows: int
    cols: int
    depth: int
    split: int = 1
    warps: int = 4
    stages: int = 4


@dataclass(frozen=True)
class FusedNormInput:
    """Input of a fused RMS norm of rows x [M, N], stored by the kernel that computed x.

    `scaled` [M, N] is x times the gain of the norm. The parts float32 [M, parts] of `squares` add
    up to the sum of squares of each row. The rest of the norm is one factor per row, which commutes
    with the product after it.
    """

    scaled: Tensor
    squares: Tensor
    eps: float


def linear(
    x: Tensor | FusedNormInput,
    weight: Tensor,
    out: Tensor,
    tile: LinearTile,
    workspace: Workspace,
    *,
    bias: Tensor | None = None,
    gelu: bool = False,
    gated: bool = False,
    add: bool = False,
    next_norm: tuple[Tensor, float] | None = None,
    pdl: bool = False,
) -> FusedNormInput | None:
    """Compute `out` = act(x weight^T + bias), or `out` += that with `add`.

    Args:
        x: Contiguous [M, K], or the fused norm input of such rows.
        weight: [N, K]; with `gated` [2 N, K], gate rows before up rows.
        out: Contiguous [M, N].
        tile: Sizes of the tiles, and the split of K.
        workspace: Memory for the parts of a split sum.
        bias: [N], or None.
        gelu: Apply the tanh form of GELU.
        gated: Compute silu(gate) * up.
        add: Add to `out`.
        next_norm: Gain [N] and epsilon of the norm that follows, to prepare its input.
        pdl: Launch with programmatic dependent launch. The kernel then reads weight, bias and gain
            before the previous kernel has ended, so that kernel must not write them.

    Returns:
        The input of the next norm, None without `next_norm`.
    """
    rows = x.scaled if isinstance(x, FusedNormInput) else x
    squares = x.squares if isinstance(x, FusedNormInput) else None
    (m, k), n = rows.shape, out.shape[1]
    assert rows.is_contiguous()
    assert weight.is_contiguous()
    assert out.is_contiguous()
    assert weight.shape == ((2 if gated else 1) * n, k)
    assert out.shape[0] == m
    grid = (triton.cdiv(n, tile.cols), triton.cdiv(m, tile.rows), tile.split)
    if tile.split > 1:
        assert not gated
        assert tile.split * m * n <= workspace.partial.numel()
        assert grid[0] * grid[1] <= MAX_TILES
    next_input = None
    if next_norm is not None:
        squares_out = torch.empty(m, grid[0], device=out.device, dtype=torch.float32)
        next_input = FusedNormInput(torch.empty_like(out), squares_out, next_norm[1])
    parts = 0 if squares is None else squares.shape[1]
    _linear_kernel[grid](
        rows,
        weight,
        weight if bias is None else bias,
        out,
        weight if squares is None else squares,
        weight if next_norm is None else next_norm[0],
        weight if next_input is None else next_input.scaled,
        weight if next_input is None else next_input.squares,
        workspace.partial,
        workspace.arrived,
        x.eps if isinstance(x, FusedNormInput) else 0.0,
        m,
        n,
        K=k,
        PARTS=parts,
        PARTS_PAD=triton.next_power_of_2(max(parts, 1)),
        STORE_NORM=next_input is not None,
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
        PDL=pdl,
        num_warps=tile.warps,
        num_stages=tile.stages,
        launch_pdl=pdl,
    )
    return next_input


@triton.jit
def _norm_input_kernel(  # type: ignore[no-untyped-def]
    x,
    gain,
    scaled,
    squares,
    K: tl.constexpr,
    BLOCK: tl.constexpr,
    PDL: tl.constexpr,
):
    wait_for_inputs(PDL)
    row = tl.program_id(0).to(tl.int64)
    ks = tl.arange(0, BLOCK)
    mask = ks < K
    x_f32 = tl.load(x + row * K + ks, mask=mask, other=0.0).to(tl.float32)
    gain_row = tl.load(gain + ks, mask=mask, other=0.0).to(tl.float32)
    tl.store(scaled + row * K + ks, (x_f32 * gain_row).to(scaled.dtype.element_ty), mask=mask)
    tl.store(squares + row, tl.sum(x_f32 * x_f32, axis=0))


def prepare_norm_input(x: Tensor, gain: Tensor, eps: float, *, pdl: bool = False) -> FusedNormInput:
    """Return the input of a fused norm for rows x [M, K] that `linear` did not compute."""
    rows, width = x.shape
    assert x.is_contiguous()
    squares = torch.empty(rows, 1, device=x.device, dtype=torch.float32)
    norm_input = FusedNormInput(torch.empty_like(x), squares, eps)
    _norm_input_kernel[(rows,)](
        x,
        gain,
        norm_input.scaled,
        norm_input.squares,
        K=width,
        BLOCK=triton.next_power_of_2(width),
        PDL=pdl,
        num_warps=4,
        launch_pdl=pdl,
    )
    return norm_input
