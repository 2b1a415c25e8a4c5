"""FP8 matrix products of the rows of a decode step with the weights of their experts.

These products are bound by reading weights. Kernels use programmatic dependent launch: each
starts while the previous one ends. The plain form is `fp8.dequantize_weight` and a product per
expert.
"""

from dataclasses import dataclass

import torch
import triton
import triton.language as tl
from torch import Tensor

from sglang_omni.kernels.pdl import wait_for_inputs
from sglang_omni.models.ming.thinker.decode_moe_triton import ExpertOrder
from sglang_omni.models.ming.thinker.fp8_layout import BLOCK

TILE_ROWS = 16
"""Rows of a tile; an expert rarely has more rows in a decode step."""


@dataclass(frozen=True)
class MoeGemmTile:
    """Tiling of a product: columns of a tile, warps and stages."""

    cols: int = 64
    warps: int = 4
    stages: int = 4


@triton.jit
def _multiply_experts_kernel(  # type: ignore[no-untyped-def]
    rows,
    row_scales,
    weight,
    scales,
    expert_weights,
    out,
    slots,
    experts,
    total,
    COUNT,
    N: tl.constexpr,
    K: tl.constexpr,
    SLOTS_PER_ROW: tl.constexpr,
    WEIGHTED: tl.constexpr,
    BLOCK: tl.constexpr,
    BM: tl.constexpr,
    BN: tl.constexpr,
    PDL: tl.constexpr,
):
    """Compute BN columns for the rows of one tile.

    The weight is the first operand, because it is the taller one.
    """
    part, tile = tl.program_id(0), tl.program_id(1)
    wait_for_inputs(PDL)
    # Loaded together, so that a tile waits for memory once. Tiles after the last have any numbers.
    num_slots = tl.load(total)
    expert = tl.load(experts + tile).to(tl.int64)
    slot = tl.load(slots + tile * BM + tl.arange(0, BM))
    if tile * BM < num_slots:
        slot_mask = slot < COUNT
        row = slot // SLOTS_PER_ROW
        cols, depth = part * BN + tl.arange(0, BN), tl.arange(0, BLOCK)
        blocks: tl.constexpr = K // BLOCK
        w_ptrs = weight + (expert * N + cols[:, None]) * K + depth[None, :]
        x_ptrs = rows + row[None, :] * K + depth[:, None]
        # A tile lies within one weight block, so a step has one weight scale.
        scale_ptrs = scales + (expert * (N // BLOCK) + part * BN // BLOCK) * blocks
        x_scale_ptrs = row_scales + row * blocks
        acc = tl.zeros((BN, BM), tl.float32)
        # Scales are loaded one step ahead, so that they do not stall the step.
        scale = tl.load(scale_ptrs)
        x_scale = tl.load(x_scale_ptrs, mask=slot_mask, other=0.0)
        for block in range(blocks):
            next_block = tl.minimum(block + 1, blocks - 1)
            next_scale = tl.load(scale_ptrs + next_block)
            next_x_scale = tl.load(x_scale_ptrs + next_block, mask=slot_mask, other=0.0)
            w = tl.load(w_ptrs + block * BLOCK)
            x = tl.load(x_ptrs + block * BLOCK, mask=slot_mask[None, :], other=0.0)
            acc += tl.dot(w, x) * (x_scale * scale)[None, :]
            scale, x_scale = next_scale, next_x_scale
        if WEIGHTED:
            acc *= tl.load(expert_weights + slot, mask=slot_mask, other=0.0)[None, :]
        offs = slot[None, :].to(tl.int64) * N + cols[:, None]
        mask = slot_mask[None, :] & (cols[:, None] < N)
        tl.store(out + offs, acc.to(out.dtype.element_ty), mask=mask)


def supports_expert_sizes(down: torch.Size) -> bool:
    """Whether the kernel divides the sizes of down weights [experts, hidden, width] evenly."""
    return all(size % BLOCK == 0 for size in down[1:])


def multiply_experts(
    rows: tuple[Tensor, Tensor],
    weight: tuple[Tensor, Tensor],
    order: ExpertOrder,
    out: Tensor,
    tile: MoeGemmTile,
    expert_weights: Tensor | None = None,
    *,
    pdl: bool = False,
) -> None:
    """Multiply rows by the transposed weights of their experts.

    Slot s of `out` is the product of row s // (slots / rows), times its entry of `expert_weights`
    if given.

    Args:
        rows: float8_e4m3fn [rows, K] and float32 scales [rows, K / 128].
        weight: float8_e4m3fn [experts, N, K] and float32 scales [experts, N / 128, K / 128].
        order: Grouping into tiles of `TILE_ROWS` rows.
        out: [slots, N].
        tile: Sizes of the tiles.
        expert_weights: float32 [slots].
        pdl: Launch with programmatic dependent launch.
    """
    (x, x_scale), (w, w_scale) = rows, weight
    slots, (_, n, k) = out.shape[0], w.shape
    assert n % BLOCK == 0
    assert k % BLOCK == 0
    assert BLOCK % tile.cols == 0
    assert slots % len(x) == 0
    assert all(tensor.is_contiguous() for tensor in (x, x_scale, w, w_scale, out))
    _multiply_experts_kernel[(n // tile.cols, len(order.experts))](
        x,
        x_scale,
        w,
        w_scale,
        w_scale if expert_weights is None else expert_weights,
        out,
        order.slots,
        order.experts,
        order.total,
        slots,
        N=n,
        K=k,
        SLOTS_PER_ROW=slots // len(x),
        WEIGHTED=expert_weights is not None,
        BLOCK=BLOCK,
        BM=TILE_ROWS,
        BN=tile.cols,
        PDL=pdl,
        num_warps=tile.warps,
        num_stages=tile.stages,
        launch_pdl=pdl,
    )
