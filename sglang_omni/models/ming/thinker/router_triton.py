"""Router of a decode step: logits, selected experts, their order and FP8 rows.

The first kernel multiplies a small batch by the weight of the text router, split over the hidden
size (split-K), so that many programs read the weight at once. The second adds the partial sums,
rounds the logits as a separate product would, and selects experts; for experts in FP8, its other
programs quantize the rows. It also groups the slots of a single row by expert; those of more rows
take a third kernel. The plain form is `F.linear`, `routing.select_experts` and
`fp8.quantize_weight` per row.
"""

from dataclasses import dataclass

import torch
import triton
import triton.language as tl
from torch import Tensor

from sglang_omni.kernels.pdl import (
    PREFETCH_PROGRAMS,
    prefetch_part,
    view_as_bytes,
    wait_for_inputs,
)
from sglang_omni.kernels.registers import MAX_REGISTERS
from sglang_omni.models.ming.thinker.decode_moe_triton import (
    ExpertOrder,
    Grouping,
    allocate_order,
    group_by_expert,
)
from sglang_omni.models.ming.thinker.fp8_layout import BLOCK
from sglang_omni.models.ming.thinker.fp8_triton import (
    BLOCKS_PER_PROGRAM,
    allocate_fp8_rows,
    quantize_blocks,
)
from sglang_omni.models.ming.thinker.routing import Routing
from sglang_omni.models.ming.thinker.routing_triton import choose_experts

COLUMNS_PER_SPLIT = 256
"""Columns of the hidden size that one program sums; it loads all of them at once."""
EXPERTS_PER_PROGRAM = 32


@dataclass(frozen=True)
class RoutedTokens:
    """The experts of a decode step for its rows x [tokens, hidden].

    `weights` (float32) and `ids` (int32) are [tokens, top_k + 1], the shared expert last; `logits`
    [tokens, experts] have the dtype of x. `order` groups the slots by expert.
    """

    weights: Tensor
    ids: Tensor
    logits: Tensor
    order: ExpertOrder


@dataclass(frozen=True)
class RoutedRows(RoutedTokens):
    """The same, with the rows in FP8.

    `rows` is x in float8_e4m3fn, `scales` [tokens, hidden / 128] float32.
    """

    rows: Tensor
    scales: Tensor


@triton.jit
def _logits_kernel(  # type: ignore[no-untyped-def]
    x,
    weight,
    partial,
    M,
    EXPERTS: tl.constexpr,
    K: tl.constexpr,
    SPAN: tl.constexpr,
    BM: tl.constexpr,
    BN: tl.constexpr,
    PRECISION: tl.constexpr,
    PDL: tl.constexpr,
):
    """Compute one split of the sums [BM, BN] for some experts."""
    tile, split = tl.program_id(0), tl.program_id(1)
    experts, rows = tile * BN + tl.arange(0, BN), tl.arange(0, BM)
    depth = split * SPAN + tl.arange(0, SPAN)
    row_mask = rows[:, None] < M
    # The weight is constant: load it while the previous kernel still runs.
    weight_tile = tl.load(weight + experts[:, None] * K + depth[None, :])
    wait_for_inputs(PDL)
    x_tile = tl.load(x + rows[:, None] * K + depth[None, :], mask=row_mask, other=0.0)
    acc = tl.dot(x_tile, tl.trans(weight_tile), input_precision=PRECISION)
    offs = (split * M + rows[:, None]) * EXPERTS + experts[None, :]
    tl.store(partial + offs, acc, mask=row_mask & (experts[None, :] < EXPERTS))


@triton.jit
def _add_splits(partial, token, M, EXPERTS: tl.constexpr, SPLITS: tl.constexpr):  # type: ignore[no-untyped-def]
    """Add the split sums of the logits of a token, in a fixed order."""
    experts = tl.arange(0, EXPERTS)
    # All loads go before the first sum, so that they wait for memory together. Triton's tuples are
    # concatenated: it has no unpacking.
    parts = ()
    for split in tl.static_range(SPLITS):
        part_ptrs = partial + (split * M + token) * EXPERTS + experts
        parts = parts + (tl.load(part_ptrs),)  # type: ignore[assignment]  # noqa: RUF005
    logit_sum = tl.zeros((EXPERTS,), tl.float32)
    for split in tl.static_range(SPLITS):
        logit_sum += parts[split]
    return logit_sum


@triton.jit
def _group_one_token(  # type: ignore[no-untyped-def]
    expert_ids,
    slots_out,
    experts_out,
    total_out,
    TOP_K: tl.constexpr,
    SLOT_BLOCK: tl.constexpr,
    HEIGHT: tl.constexpr,
):
    """Write the order of a step of one token: each of its slots has a tile, the last slot first.

    That is the shared expert, whose weight is being prefetched.
    """
    tiles, rows = tl.arange(0, SLOT_BLOCK)[:, None], tl.arange(0, HEIGHT)[None, :]
    tile_slots = tl.where(rows == 0, TOP_K - tiles, TOP_K + 1)
    tl.store(slots_out + tiles * HEIGHT + rows, tile_slots, mask=tiles <= TOP_K)
    slots = tl.arange(0, SLOT_BLOCK)
    tl.store(experts_out + TOP_K - slots, expert_ids, mask=slots <= TOP_K)
    tl.store(total_out, (TOP_K + 1) * HEIGHT)


@triton.jit
def _route_token(  # type: ignore[no-untyped-def]
    partial,
    bias,
    weights,
    ids,
    logits,
    token,
    M,
    scale,
    EXPERTS: tl.constexpr,
    GROUPS: tl.constexpr,
    TOP_GROUPS: tl.constexpr,
    TOP_K: tl.constexpr,
    SLOT_BLOCK: tl.constexpr,
    SPLITS: tl.constexpr,
    PDL: tl.constexpr,
):
    """Select the experts of a token, and return their ids [SLOT_BLOCK]."""
    experts, slots = tl.arange(0, EXPERTS), tl.arange(0, SLOT_BLOCK)
    biases = tl.load(bias + experts)
    wait_for_inputs(PDL)
    rounded = _add_splits(partial, token, M, EXPERTS, SPLITS).to(logits.dtype.element_ty)
    tl.store(logits + token * EXPERTS + experts, rounded)
    expert_weights, expert_ids = choose_experts(
        rounded.to(tl.float32),
        biases,
        scale,
        EXPERTS,
        GROUPS,
        TOP_GROUPS,
        TOP_K,
        SLOT_BLOCK,
    )
    offs = token * (TOP_K + 1) + slots
    tl.store(weights + offs, expert_weights, mask=slots <= TOP_K)
    tl.store(ids + offs, expert_ids, mask=slots <= TOP_K)
    return expert_ids


@triton.jit
def _route_and_quantize_kernel(  # type: ignore[no-untyped-def]
    partial,
    bias,
    x,
    weights,
    ids,
    logits,
    quantized,
    scales,
    order_slots,
    order_experts,
    order_total,
    prefetch_weight,
    lines,
    M,
    scale,
    EXPERTS: tl.constexpr,
    GROUPS: tl.constexpr,
    TOP_GROUPS: tl.constexpr,
    TOP_K: tl.constexpr,
    SLOT_BLOCK: tl.constexpr,
    SPLITS: tl.constexpr,
    HEIGHT: tl.constexpr,
    K: tl.constexpr,
    BLOCK: tl.constexpr,
    BLOCKS: tl.constexpr,
    QUANTIZE_PARTS: tl.constexpr,
    GROUP: tl.constexpr,
    PDL: tl.constexpr,
):
    """Select the experts of one token in the first of its programs.

    The next QUANTIZE_PARTS quantize BLOCKS of its blocks each, and others prefetch a weight. With
    GROUP, the token is the only one, and the first program also writes its order.
    """
    token, part = tl.program_id(0), tl.program_id(1)
    if part == 0:
        expert_ids = _route_token(
            partial,
            bias,
            weights,
            ids,
            logits,
            token,
            M,
            scale,
            EXPERTS,
            GROUPS,
            TOP_GROUPS,
            TOP_K,
            SLOT_BLOCK,
            SPLITS,
            PDL,
        )
        if GROUP:
            _group_one_token(
                expert_ids, order_slots, order_experts, order_total, TOP_K, SLOT_BLOCK, HEIGHT
            )
        elif token == 0:
            # The kernel that groups the slots counts them.
            tl.store(order_total, 0)
    elif part <= QUANTIZE_PARTS:
        wait_for_inputs(PDL)
        quantize_blocks(x, quantized, scales, token, (part - 1) * BLOCKS, K, BLOCK, BLOCKS)
    else:
        first: tl.constexpr = QUANTIZE_PARTS + 1
        prefetch_part(prefetch_weight, lines, part - first, tl.num_programs(1) - first)


def supports_router_sizes(experts: int, hidden: int) -> bool:
    """Whether the kernels divide these sizes evenly."""
    return experts % EXPERTS_PER_PROGRAM == 0 and hidden % COLUMNS_PER_SPLIT == 0


def _allocate_routed_tokens(x: Tensor, routing: Routing, grouping: Grouping) -> RoutedTokens:
    """Allocate the outputs for rows x [tokens, hidden]."""
    tokens, device = len(x), x.device
    slots = tokens, routing.top_k + 1
    return RoutedTokens(
        weights=torch.empty(slots, dtype=torch.float32, device=device),
        ids=torch.empty(slots, dtype=torch.int32, device=device),
        logits=torch.empty(tokens, routing.experts, dtype=x.dtype, device=device),
        order=allocate_order(tokens * slots[1], grouping, device),
    )


def route_tokens(
    x: Tensor,
    weight: Tensor,
    bias: Tensor,
    routing: Routing,
    grouping: Grouping,
    pdl: bool = False,
) -> RoutedTokens:
    """Select experts for the rows of a decode step, of which there is at least one, and group them.

    Args:
        x: Contiguous [tokens, hidden].
        weight: [experts, hidden].
        bias: float32 [experts].
        routing: Numbers of experts and groups, and how they are chosen.
        grouping: How slots are grouped by expert. The last expert is the shared one.
        pdl: Launch with programmatic dependent launch. The kernels then read weight and bias before
            the previous kernel has ended.
    """
    routed = _allocate_routed_tokens(x, routing, grouping)
    _route(x, weight, bias, routing, grouping, routed, None, pdl)
    return routed


def route_rows(
    x: Tensor,
    weight: Tensor,
    bias: Tensor,
    routing: Routing,
    grouping: Grouping,
    pdl: bool = False,
) -> RoutedRows:
    """Select experts for the rows of a decode step, group them, and quantize the rows to FP8.

    The arguments are those of `route_tokens`.
    """
    routed = _allocate_routed_tokens(x, routing, grouping)
    tokens, hidden = x.shape
    rows, scales = allocate_fp8_rows(tokens, hidden, x.device)
    _route(x, weight, bias, routing, grouping, routed, (rows, scales), pdl)
    return RoutedRows(**vars(routed), rows=rows, scales=scales)


def _route(
    x: Tensor,
    weight: Tensor,
    bias: Tensor,
    routing: Routing,
    grouping: Grouping,
    routed: RoutedTokens,
    fp8_rows: tuple[Tensor, Tensor] | None,
    pdl: bool,
) -> None:
    """Fill `routed`, and `fp8_rows` (values and scales) if given."""
    assert supports_router_sizes(routing.experts, x.shape[1])
    assert grouping.experts == routing.experts + 1
    assert x.is_contiguous()
    assert weight.is_contiguous()
    assert bias.is_contiguous()
    assert bias.dtype == torch.float32
    partial = _multiply_splits(x, weight, pdl)
    _launch_selection(partial, x, bias, routing, grouping, routed, fp8_rows, pdl)
    # The experts of one token differ, so their order needs no kernel of its own.
    if len(x) > 1:
        group_by_expert(routed.ids, grouping, routed.order, pdl)


def _multiply_splits(x: Tensor, weight: Tensor, pdl: bool) -> Tensor:
    """Return the sums of the logits, float32 [splits, tokens, experts]."""
    (tokens, hidden), experts = x.shape, len(weight)
    splits = hidden // COLUMNS_PER_SPLIT
    partial = torch.empty(splits, tokens, experts, dtype=torch.float32, device=x.device)
    _logits_kernel[(experts // EXPERTS_PER_PROGRAM, splits)](
        x,
        weight,
        partial,
        tokens,
        EXPERTS=experts,
        K=hidden,
        SPAN=COLUMNS_PER_SPLIT,
        BM=max(16, triton.next_power_of_2(tokens)),
        BN=EXPERTS_PER_PROGRAM,
        PRECISION="ieee" if x.dtype == torch.float32 else "tf32",
        PDL=pdl,
        num_warps=4,
        launch_pdl=pdl,
    )
    return partial


def _launch_selection(
    partial: Tensor,
    x: Tensor,
    bias: Tensor,
    routing: Routing,
    grouping: Grouping,
    routed: RoutedTokens,
    fp8_rows: tuple[Tensor, Tensor] | None,
    pdl: bool,
) -> None:
    """Select experts by the sums of the logits, and quantize the rows if asked for."""
    tokens, hidden = x.shape
    # Without rows to quantize, no program reads or writes the two tensors.
    rows, scales = fp8_rows or (x, partial)
    quantize_parts = 0 if fp8_rows is None else triton.cdiv(hidden // BLOCK, BLOCKS_PER_PROGRAM)
    is_one = tokens == 1
    prefetch_weight = grouping.prefetch_weight if is_one else None
    data, lines = (x, 0) if prefetch_weight is None else view_as_bytes(prefetch_weight)
    prefetch_parts = 0 if prefetch_weight is None else PREFETCH_PROGRAMS
    _route_and_quantize_kernel[(tokens, 1 + quantize_parts + prefetch_parts)](
        partial,
        bias,
        x,
        routed.weights,
        routed.ids,
        routed.logits,
        rows,
        scales,
        routed.order.slots,
        routed.order.experts,
        routed.order.total,
        data,
        lines,
        tokens,
        routing.scale,
        EXPERTS=routing.experts,
        GROUPS=routing.groups,
        TOP_GROUPS=routing.top_groups,
        TOP_K=routing.top_k,
        SLOT_BLOCK=triton.next_power_of_2(routing.top_k + 1),
        SPLITS=len(partial),
        HEIGHT=grouping.height,
        K=hidden,
        BLOCK=BLOCK,
        BLOCKS=BLOCKS_PER_PROGRAM,
        QUANTIZE_PARTS=quantize_parts,
        GROUP=is_one,
        PDL=pdl,
        num_warps=1,
        maxnreg=MAX_REGISTERS,
        launch_pdl=pdl,
    )
