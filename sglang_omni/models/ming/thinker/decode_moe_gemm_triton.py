"""Products of a decode step's rows with the weights of their experts, in eight bits.

A card reads weights here and does little else. So kernels are pdl: each starts while the one in
front ends, and what is known of the next weights by then is asked for. The plain form is
`fp8.dequantise` and a product for each expert.
"""

from dataclasses import dataclass

import torch
import triton
import triton.language as tl
from torch import Tensor

from sglang_omni.kernels.pdl import wait_for_inputs
from sglang_omni.models.ming.thinker.decode_moe_triton import Order
from sglang_omni.models.ming.thinker.fp8_layout import BLOCK

HEIGHT = 16
"""Rows of a tile: an expert seldom has more of a step's."""


@dataclass(frozen=True)
class MoeGemmTile:
    """How a product is cut: columns of a tile, warps, stages."""

    cols: int = 64
    warps: int = 4
    stages: int = 4


@triton.jit
def _product_kernel(  # type: ignore[no-untyped-def]
    rows,
    row_scales,
    weight,
    scales,
    shares,
    out,
    slots,
    experts,
    total,
    COUNT,
    N: tl.constexpr,
    K: tl.constexpr,
    SLOTS_EACH: tl.constexpr,
    WEIGHTED: tl.constexpr,
    BLOCK: tl.constexpr,
    BM: tl.constexpr,
    BN: tl.constexpr,
    PDL: tl.constexpr,
):
    """BN columns of one tile's rows. The weight is the first operand: it is higher than wide."""
    part, tile = tl.program_id(0), tl.program_id(1)
    wait_for_inputs(PDL)
    if tile * BM < tl.load(total):
        expert = tl.load(experts + tile).to(tl.int64)
        slot = tl.load(slots + tile * BM + tl.arange(0, BM))
        taken = slot < COUNT
        row = slot // SLOTS_EACH
        cols, depth = part * BN + tl.arange(0, BN), tl.arange(0, BLOCK)
        blocks: tl.constexpr = K // BLOCK
        w_at = weight + (expert * N + cols[:, None]) * K + depth[None, :]
        x_at = rows + row[None, :] * K + depth[:, None]
        # A weight's block is as high as or higher than a tile: one scale for all of a step.
        scale_at = scales + (expert * (N // BLOCK) + part * BN // BLOCK) * blocks
        x_scale_at = row_scales + row * blocks
        acc = tl.zeros((BN, BM), tl.float32)
        # Scales are read a step ahead, for nothing else of a step would wait for memory.
        factor = tl.load(scale_at)
        x_factor = tl.load(x_scale_at, mask=taken, other=0.0)
        for block in range(blocks):
            next_block = tl.minimum(block + 1, blocks - 1)
            next_factor = tl.load(scale_at + next_block)
            next_x_factor = tl.load(x_scale_at + next_block, mask=taken, other=0.0)
            w = tl.load(w_at + block * BLOCK)
            x = tl.load(x_at + block * BLOCK, mask=taken[None, :], other=0.0)
            acc += tl.dot(w, x) * (x_factor * factor)[None, :]
            factor, x_factor = next_factor, next_x_factor
        if WEIGHTED:
            acc *= tl.load(shares + slot, mask=taken, other=0.0)[None, :]
        at = slot[None, :].to(tl.int64) * N + cols[:, None]
        inside = taken[None, :] & (cols[:, None] < N)
        tl.store(out + at, acc.to(out.dtype.element_ty), mask=inside)


def can_multiply(down: torch.Size) -> bool:
    """Whether weights down [experts, hidden, width] are of sizes that the kernel cuts evenly."""
    return all(size % BLOCK == 0 for size in down[1:])


def expert_product(
    rows: tuple[Tensor, Tensor],
    weight: tuple[Tensor, Tensor],
    order: Order,
    out: Tensor,
    tile: MoeGemmTile,
    shares: Tensor | None = None,
    *,
    pdl: bool = False,
) -> None:
    """Rows times the transposed weights of their experts: slot s of `out` [slots, N] is that of row
    s / (slots / rows), times its share of `shares` [slots] float32 if there are any.

    `rows` [rows, K] and `weight` [experts, N, K] are float8_e4m3fn, with scales [rows, K / 128] and
    [experts, N / 128, K / 128] in float32. `order` is of tiles of `HEIGHT` rows. Where `pdl`,
    this starts before the kernel in front has ended.
    """
    (x, x_scale), (w, w_scale) = rows, weight
    slots, (_, n, k) = out.shape[0], w.shape
    assert n % BLOCK == 0 and k % BLOCK == 0 and BLOCK % tile.cols == 0 and slots % len(x) == 0
    assert all(one.is_contiguous() for one in (x, x_scale, w, w_scale, out))
    _product_kernel[(n // tile.cols, len(order.experts))](
        x,
        x_scale,
        w,
        w_scale,
        w_scale if shares is None else shares,
        out,
        order.slots,
        order.experts,
        order.total,
        slots,
        N=n,
        K=k,
        SLOTS_EACH=slots // len(x),
        WEIGHTED=shares is not None,
        BLOCK=BLOCK,
        BM=HEIGHT,
        BN=tile.cols,
        PDL=pdl,
        num_warps=tile.warps,
        num_stages=tile.stages,
        launch_pdl=pdl,
    )
