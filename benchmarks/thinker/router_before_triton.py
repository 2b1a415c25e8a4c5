"""The router as it was before, for `benchmarks.thinker.router_kernels`. Deleted once measured."""

import torch
import triton
import triton.language as tl
from torch import Tensor

from sglang_omni.kernels.pdl import wait_for_inputs
from sglang_omni.models.ming.thinker.decode_moe_triton import (
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
from sglang_omni.models.ming.thinker.router_triton import (
    COLUMNS_PER_SPLIT,
    EXPERTS_PER_PROGRAM,
    RoutedRows,
    _logits_kernel,
)
from sglang_omni.models.ming.thinker.routing import Routing


@triton.jit
def choose_experts(  # type: ignore[no-untyped-def]
    raw,
    bias,
    scale,
    EXPERTS: tl.constexpr,
    GROUPS: tl.constexpr,
    TOP_GROUPS: tl.constexpr,
    TOP_K: tl.constexpr,
    SLOT_BLOCK: tl.constexpr,
):
    """Return weights and ids [SLOT_BLOCK] for one token's float32 logits and biases [EXPERTS].

    The shared expert is in slot TOP_K. Ties go to the lower index.
    """
    experts = tl.arange(0, EXPERTS)
    scores = 1.0 / (1.0 + tl.exp(-raw))
    biased = scores + bias

    SIZE: tl.constexpr = EXPERTS // GROUPS
    grouped = tl.reshape(biased, (GROUPS, SIZE))
    top_index = tl.argmax(grouped, axis=1)
    rest = tl.where(tl.arange(0, SIZE)[None, :] == top_index[:, None], float("-inf"), grouped)
    group_scores = tl.max(grouped, axis=1) + tl.max(rest, axis=1)
    # A group is allowed if fewer than TOP_GROUPS rank before it.
    group = tl.arange(0, GROUPS)
    is_tied = (group_scores[None, :] == group_scores[:, None]) & (group[None, :] < group[:, None])
    num_better = tl.sum(
        ((group_scores[None, :] > group_scores[:, None]) | is_tied).to(tl.int32), axis=1
    )
    allowed = tl.where((num_better < TOP_GROUPS)[:, None], grouped, float("-inf"))

    # Integers of the same order: a warp finds their maximum in one instruction.
    bits = tl.reshape(allowed, (EXPERTS,)).to(tl.int32, bitcast=True)
    remaining = bits ^ ((bits >> 31) & 0x7FFFFFFF)
    slots = tl.arange(0, SLOT_BLOCK)
    ids = tl.full((SLOT_BLOCK,), EXPERTS, tl.int32)
    for slot in tl.static_range(TOP_K):
        best = tl.min(tl.where(remaining == tl.max(remaining, axis=0), experts, EXPERTS), axis=0)
        ids = tl.where(slots == slot, best, ids)
        remaining = tl.where(experts == best, -0x80000000, remaining)
    selected = tl.gather(scores, tl.minimum(ids, EXPERTS - 1), axis=0)
    selected = tl.where(slots < TOP_K, selected, 0.0)
    weights = selected / (tl.sum(selected, axis=0) + 1e-20) * scale
    # The shared expert has weight 1, beside the routed ones.
    return tl.where(slots == TOP_K, 1.0, weights), ids


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
    """Add the split sums of the logits of a token, in a fixed order, and select its experts."""
    experts, slots = tl.arange(0, EXPERTS), tl.arange(0, SLOT_BLOCK)
    biases = tl.load(bias + experts)
    wait_for_inputs(PDL)
    logit_sum = tl.zeros((EXPERTS,), tl.float32)
    for split in tl.static_range(SPLITS):
        logit_sum += tl.load(partial + (split * M + token) * EXPERTS + experts)
    rounded = logit_sum.to(logits.dtype.element_ty)
    tl.store(logits + token * EXPERTS + experts, rounded)
    expert_weights, expert_ids = choose_experts(
        rounded.to(tl.float32), biases, scale, EXPERTS, GROUPS, TOP_GROUPS, TOP_K, SLOT_BLOCK
    )
    offs = token * (TOP_K + 1) + slots
    tl.store(weights + offs, expert_weights, mask=slots <= TOP_K)
    tl.store(ids + offs, expert_ids, mask=slots <= TOP_K)


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
    total_slots,
    M,
    scale,
    EXPERTS: tl.constexpr,
    GROUPS: tl.constexpr,
    TOP_GROUPS: tl.constexpr,
    TOP_K: tl.constexpr,
    SLOT_BLOCK: tl.constexpr,
    SPLITS: tl.constexpr,
    K: tl.constexpr,
    BLOCK: tl.constexpr,
    BLOCKS: tl.constexpr,
    PDL: tl.constexpr,
):
    """Select the experts of one token; the other programs quantize BLOCKS of its blocks each."""
    token, part = tl.program_id(0), tl.program_id(1)
    if part == 0:
        _route_token(
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
        if token == 0:
            tl.store(total_slots, 0)
    else:
        wait_for_inputs(PDL)
        quantize_blocks(x, quantized, scales, token, (part - 1) * BLOCKS, K, BLOCK, BLOCKS)


def route_before(
    x: Tensor,
    weight: Tensor,
    bias: Tensor,
    routing: Routing,
    grouping: Grouping,
    pdl: bool = False,
) -> RoutedRows:
    """Compute `router_triton.route_rows` with three kernels for any number of rows."""
    (tokens, hidden), device = x.shape, x.device
    experts, splits = routing.experts, hidden // COLUMNS_PER_SPLIT
    slots = tokens, routing.top_k + 1
    rows, scales = allocate_fp8_rows(tokens, hidden, device)
    routed = RoutedRows(
        weights=torch.empty(slots, dtype=torch.float32, device=device),
        ids=torch.empty(slots, dtype=torch.int32, device=device),
        logits=torch.empty(tokens, experts, dtype=x.dtype, device=device),
        order=allocate_order(tokens * slots[1], grouping, device),
        rows=rows,
        scales=scales,
    )
    partial = torch.empty(splits, tokens, experts, dtype=torch.float32, device=device)
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
    parts = triton.cdiv(hidden // BLOCK, BLOCKS_PER_PROGRAM)
    _route_and_quantize_kernel[(tokens, 1 + parts)](
        partial,
        bias,
        x,
        routed.weights,
        routed.ids,
        routed.logits,
        rows,
        scales,
        routed.order.total,
        tokens,
        routing.scale,
        EXPERTS=experts,
        GROUPS=routing.groups,
        TOP_GROUPS=routing.top_groups,
        TOP_K=routing.top_k,
        SLOT_BLOCK=triton.next_power_of_2(routing.top_k + 1),
        SPLITS=splits,
        K=hidden,
        BLOCK=BLOCK,
        BLOCKS=BLOCKS_PER_PROGRAM,
        PDL=pdl,
        num_warps=1,
        launch_pdl=pdl,
    )
    group_by_expert(routed.ids, grouping, routed.order, pdl)
    return routed
