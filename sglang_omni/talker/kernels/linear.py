"""Linear layers for few rows, fused with the activation or the addition after.

For few rows a product is bound by reading its weight and by starting kernels. The normalisation
before it stays a kernel of its own: fused in, every tile would repeat it, which took three times as
long on an H200. The plain form is `LibraryOps` in `sglang_omni/talker/fast/ops.py`.
"""

from dataclasses import dataclass

import torch
import triton
import triton.language as tl
from torch import Tensor

MAX_TILES = 4096


@triton.jit
def gelu_tanh(x):  # type: ignore[no-untyped-def]
    """GELU in its tanh form; tanh(z) = 2 sigmoid(2 z) - 1."""
    z = 0.7978845608028654 * (x + 0.044715 * x * x * x)
    return x * tl.sigmoid(2.0 * z)


@triton.jit
def _linear_kernel(  # type: ignore[no-untyped-def]
    x,
    weight,
    bias,
    out,
    partial,
    arrived,
    M,
    N,
    K: tl.constexpr,
    BIAS: tl.constexpr,
    GELU: tl.constexpr,
    GATED: tl.constexpr,
    ADD: tl.constexpr,
    SPLIT: tl.constexpr,
    BM: tl.constexpr,
    BN: tl.constexpr,
    BK: tl.constexpr,
    PRECISION: tl.constexpr,
):
    """One tile [BM, BN] of the output, or one of SPLIT shares of its sum over K."""
    tile_n, tile_m, share = tl.program_id(0), tl.program_id(1), tl.program_id(2)
    dtype = x.dtype.element_ty
    rows = tile_m * BM + tl.arange(0, BM)
    cols = tile_n * BN + tl.arange(0, BN)
    row_in, col_in = rows[:, None] < M, cols[None, :] < N
    span: tl.constexpr = tl.cdiv(tl.cdiv(K, BK), SPLIT) * BK
    acc = tl.zeros((BM, BN), tl.float32)
    gated = tl.zeros((BM, BN), tl.float32)
    for step in range(0, span, BK):
        ks = share * span + step + tl.arange(0, BK)
        k_in = ks < K
        a = tl.load(x + rows[:, None] * K + ks[None, :], mask=row_in & k_in[None, :], other=0.0)
        at = cols[:, None] * K + ks[None, :]
        inside = (cols[:, None] < N) & k_in[None, :]
        b = tl.load(weight + at, mask=inside, other=0.0)
        acc = tl.dot(a, tl.trans(b), acc, input_precision=PRECISION)
        if GATED:
            up = tl.load(weight + N * K + at, mask=inside, other=0.0)
            gated = tl.dot(a, tl.trans(up), gated, input_precision=PRECISION)
    out_at = rows[:, None] * N + cols[None, :]
    inside = row_in & col_in
    finish = True
    if SPLIT > 1:
        # Shares are summed in a fixed order by whoever comes last, so that sums repeat exactly.
        tl.store(partial + share * M * N + out_at, acc, mask=inside)
        tl.debug_barrier()
        tile = tile_m * tl.num_programs(0) + tile_n
        before = tl.atomic_add(arrived + tile, 1, sem="acq_rel")
        finish = before == SPLIT - 1
        if finish:
            acc = tl.zeros((BM, BN), tl.float32)
            for other in range(SPLIT):
                acc += tl.load(
                    partial + other * M * N + out_at, mask=inside, other=0.0, cache_modifier=".cg"
                )
            tl.store(arrived + tile, 0)
    if finish:
        if BIAS:
            acc += tl.load(bias + cols, mask=cols < N, other=0.0).to(tl.float32)[None, :]
        if GELU:
            acc = gelu_tanh(acc)
        if GATED:
            acc = acc * tl.sigmoid(acc) * gated
        if ADD:
            acc += tl.load(out + out_at, mask=inside, other=0.0).to(tl.float32)
        tl.store(out + out_at, acc.to(dtype), mask=inside)


@dataclass(frozen=True)
class Tile:
    """How a product is cut: output tile, depth of a step, shares of the sum, warps, stages."""

    rows: int
    cols: int
    depth: int
    split: int = 1
    warps: int = 4
    stages: int = 4


class Workspace:
    """Scratch memory for split sums, shared by all kernels of one stream."""

    def __init__(self, elements: int, device: torch.device) -> None:
        self.partial = torch.empty(elements, device=device, dtype=torch.float32)
        self.arrived = torch.zeros(MAX_TILES, device=device, dtype=torch.int32)


def linear(
    x: Tensor,
    weight: Tensor,
    out: Tensor,
    tile: Tile,
    space: Workspace,
    *,
    bias: Tensor | None = None,
    gelu: bool = False,
    gated: bool = False,
    add: bool = False,
) -> Tensor:
    """`out` = act(x weight^T + bias), or `out` += that where `add`.

    x [M, K] and out [M, N] are contiguous, weight [N, K]. `gated` reads weight [2 N, K] as gate
    rows and up rows and computes silu(gate) * up.
    """
    m, k = x.shape
    n = out.shape[1]
    assert x.is_contiguous() and weight.is_contiguous() and out.is_contiguous()
    assert weight.shape == ((2 if gated else 1) * n, k) and out.shape[0] == m
    grid = (triton.cdiv(n, tile.cols), triton.cdiv(m, tile.rows), tile.split)
    if tile.split > 1:
        assert not gated
        assert tile.split * m * n <= space.partial.numel() and grid[0] * grid[1] <= MAX_TILES
    _linear_kernel[grid](
        x,
        weight,
        weight if bias is None else bias,
        out,
        space.partial,
        space.arrived,
        m,
        n,
        K=k,
        BIAS=bias is not None,
        GELU=gelu,
        GATED=gated,
        ADD=add,
        SPLIT=tile.split,
        BM=tile.rows,
        BN=tile.cols,
        BK=tile.depth,
        PRECISION="ieee" if x.dtype == torch.float32 else "tf32",
        num_warps=tile.warps,
        num_stages=tile.stages,
    )
    return out
