"""Kernels around the expert products of a decode step: grouping by expert, SwiGLU and the sum.

SGLang has two kernels for grouping, two between the products and a generic one for the sum. For
small batches each costs more to start than to run. With `pdl`, kernels use programmatic dependent
launch. The plain forms are in the tests.
"""

from dataclasses import dataclass

import torch
import triton
import triton.language as tl
from torch import Tensor

from sglang_omni.kernels.pdl import prefetch_part, view_as_bytes, wait_for_inputs
from sglang_omni.models.ming.thinker.fp8_layout import BLOCK
from sglang_omni.models.ming.thinker.fp8_triton import allocate_fp8_rows, to_fp8

SUM_COLUMNS_PER_PROGRAM = 1024


@dataclass(frozen=True)
class ExpertOrder:
    """Rows grouped by expert, in tiles of one expert each, as SGLang's kernels expect them.

    `slots` are indices into the flat expert ids; each expert's are padded to whole tiles with the
    number of ids. `experts` has the expert of each tile. `total` is the number of slots in use.
    """

    slots: Tensor
    experts: Tensor
    total: Tensor


@dataclass(frozen=True)
class Grouping:
    """How slots are grouped by expert.

    Attributes:
        experts: Number of experts.
        height: Rows of a tile.
        prefetch_weight: A weight that the next kernels read in any case.
    """

    experts: int
    height: int
    prefetch_weight: Tensor | None = None


@triton.jit
def _group_kernel(  # type: ignore[no-untyped-def]
    ids,
    slots,
    experts,
    total,
    prefetch_weight,
    lines,
    TOKENS,
    TOP_K: tl.constexpr,
    TOKENS_PAD: tl.constexpr,
    HEIGHT: tl.constexpr,
    PREFETCH: tl.constexpr,
    PDL: tl.constexpr,
):
    """Write the slots of one expert to as many tiles as its rows need, at the next free tiles.

    The order of experts changes where rows are computed, not their values.
    """
    # Start with the shared expert: its weight is being prefetched.
    expert = tl.num_programs(0) - 1 - tl.program_id(0)
    if PREFETCH:
        prefetch_part(prefetch_weight, lines, tl.program_id(0), tl.num_programs(0))
    tokens = tl.arange(0, TOKENS_PAD)
    wait_for_inputs(PDL)
    # No sums across threads are needed: a token has an expert at most once.
    is_assigned = tl.zeros((TOKENS_PAD,), tl.int32)
    rank = tl.zeros((TOKENS_PAD,), tl.int32)
    for column in tl.static_range(TOP_K):
        expert_ids = tl.load(ids + tokens * TOP_K + column, mask=tokens < TOKENS, other=-1)
        is_assigned += (expert_ids == expert).to(tl.int32)
        rank += (expert_ids == expert).to(tl.int32) * column
    rows = tl.sum(is_assigned, axis=0)
    if rows > 0:
        tiles = (rows + HEIGHT - 1) // HEIGHT
        start = tl.atomic_add(total, tiles * HEIGHT)
        slot_ptrs = slots + start + tl.cumsum(is_assigned, axis=0) - 1
        tl.store(slot_ptrs, tokens * TOP_K + rank, mask=is_assigned > 0)
        padding = rows + tl.arange(0, HEIGHT)
        tl.store(
            slots + start + padding, padding * 0 + TOKENS * TOP_K, mask=padding < tiles * HEIGHT
        )
        # As many tiles as there are tokens suffice for any tile height.
        tl.store(experts + start // HEIGHT + tokens, tokens * 0 + expert, mask=tokens < tiles)


def allocate_order(slots: int, grouping: Grouping, device: torch.device) -> ExpertOrder:
    """Allocate the order of a number of slots."""
    height = grouping.height
    tiles = min(slots, (slots + grouping.experts * (height - 1)) // height)
    sizes = tiles * height, tiles, 1
    return ExpertOrder(*(torch.empty(size, dtype=torch.int32, device=device) for size in sizes))


def group_by_expert(ids: Tensor, grouping: Grouping, order: ExpertOrder, pdl: bool = False) -> None:
    """Group expert ids and write the order.

    Args:
        ids: int32 [tokens, top_k]; a token has each expert at most once.
        grouping: How they are grouped.
        order: Of as many slots, with a total of zero.
        pdl: Launch with programmatic dependent launch.
    """
    tokens, top_k = ids.shape
    weight = grouping.prefetch_weight
    assert ids.is_contiguous()
    data, lines = (ids, 0) if weight is None else view_as_bytes(weight)
    _group_kernel[(grouping.experts,)](
        ids,
        order.slots,
        order.experts,
        order.total,
        data,
        lines,
        tokens,
        TOP_K=top_k,
        TOKENS_PAD=triton.next_power_of_2(tokens),
        HEIGHT=grouping.height,
        PREFETCH=weight is not None,
        PDL=pdl,
        num_warps=1,
        launch_pdl=pdl,
    )


@triton.jit
def _swiglu_kernel(  # type: ignore[no-untyped-def]
    gate_up,
    out,
    scales,
    WIDTH: tl.constexpr,
    BLOCK: tl.constexpr,
    BLOCKS: tl.constexpr,
    PDL: tl.constexpr,
):
    """Compute one row."""
    row = tl.program_id(0)
    wait_for_inputs(PDL)
    blocks = tl.arange(0, BLOCKS)
    block_mask = blocks < WIDTH // BLOCK
    offs = blocks[:, None] * BLOCK + tl.arange(0, BLOCK)[None, :]
    gate = tl.load(gate_up + row * 2 * WIDTH + offs, mask=block_mask[:, None], other=0.0).to(
        tl.float32
    )
    up = tl.load(gate_up + row * 2 * WIDTH + WIDTH + offs, mask=block_mask[:, None], other=0.0)
    values, block_scales = to_fp8(gate / (1.0 + tl.exp(-gate)) * up.to(tl.float32))
    tl.store(out + row * WIDTH + offs, values, mask=block_mask[:, None])
    tl.store(scales + row * (WIDTH // BLOCK) + blocks, block_scales, mask=block_mask)


def apply_swiglu(gate_up: Tensor, pdl: bool = False) -> tuple[Tensor, Tensor]:
    """Compute silu(gate) * up of gate_up [rows, 2 * width] and quantize it to FP8.

    Returns values [rows, width] and scales [rows, width / 128]. The result is rounded once;
    SGLang's two kernels also round to bfloat16 in between.
    """
    rows, width = gate_up.shape[0], gate_up.shape[1] // 2
    assert gate_up.is_contiguous()
    assert width % BLOCK == 0
    out, scales = allocate_fp8_rows(rows, width, gate_up.device)
    _swiglu_kernel[(rows,)](
        gate_up,
        out,
        scales,
        WIDTH=width,
        BLOCK=BLOCK,
        BLOCKS=triton.next_power_of_2(width // BLOCK),
        PDL=pdl,
        num_warps=4,
        launch_pdl=pdl,
    )
    return out, scales


@triton.jit
def _sum_kernel(  # type: ignore[no-untyped-def]
    parts,
    out,
    WIDTH: tl.constexpr,
    COUNT: tl.constexpr,
    COLUMNS: tl.constexpr,
    PDL: tl.constexpr,
):
    """Sum some columns of one token."""
    token = tl.program_id(0)
    cols = tl.program_id(1) * COLUMNS + tl.arange(0, COLUMNS)
    mask = cols < WIDTH
    wait_for_inputs(PDL)
    acc = tl.zeros((COLUMNS,), tl.float32)
    for part in tl.static_range(COUNT):
        part_row = tl.load(parts + (token * COUNT + part) * WIDTH + cols, mask=mask, other=0.0)
        acc += part_row.to(tl.float32)
    tl.store(out + token * WIDTH + cols, acc.to(out.dtype.element_ty), mask=mask)


def sum_experts(parts: Tensor, pdl: bool = False) -> Tensor:
    """Return the sums [tokens, hidden] of expert outputs [tokens, top_k, hidden]."""
    tokens, count, width = parts.shape
    assert parts.is_contiguous()
    out = torch.empty(tokens, width, dtype=parts.dtype, device=parts.device)
    _sum_kernel[(tokens, triton.cdiv(width, SUM_COLUMNS_PER_PROGRAM))](
        parts,
        out,
        WIDTH=width,
        COUNT=count,
        COLUMNS=SUM_COLUMNS_PER_PROGRAM,
        PDL=pdl,
        num_warps=4,
        launch_pdl=pdl,
    )
    return out
