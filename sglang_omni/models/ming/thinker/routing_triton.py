"""Group-limited routing in one kernel: router selection, experts and the shared expert."""

import torch
import triton
import triton.language as tl
from torch import Tensor

from sglang_omni.models.ming.thinker.routing import Routing

_TAKEN = tl.constexpr(-0x80000000)
"""Less than the key of any score."""


@triton.jit
def _merge_two_largest(first, second, other_first, other_second):  # type: ignore[no-untyped-def]
    """Return the two largest of two pairs, each in descending order."""
    seconds = tl.maximum(second, other_second)
    return tl.maximum(first, other_first), tl.maximum(tl.minimum(first, other_first), seconds)


@triton.jit
def _order_experts(  # type: ignore[no-untyped-def]
    biased, EXPERTS: tl.constexpr, GROUPS: tl.constexpr, TOP_GROUPS: tl.constexpr
):
    """Return integers [EXPERTS] in the order of the biased scores, those of closed groups last."""
    SIZE: tl.constexpr = EXPERTS // GROUPS
    grouped = tl.reshape(biased, (GROUPS, SIZE))
    nothing = tl.full((GROUPS, SIZE), float("-inf"), tl.float32)
    largest, second = tl.reduce((grouped, nothing), 1, _merge_two_largest)
    group_scores = largest + second
    # A group is allowed if fewer than TOP_GROUPS rank before it.
    group = tl.arange(0, GROUPS)
    is_tied = (group_scores[None, :] == group_scores[:, None]) & (group[None, :] < group[:, None])
    num_better = tl.sum(
        ((group_scores[None, :] > group_scores[:, None]) | is_tied).to(tl.int32), axis=1
    )
    allowed = tl.where((num_better < TOP_GROUPS)[:, None], grouped, float("-inf"))
    # A warp finds the maximum of integers in one instruction.
    bits = tl.reshape(allowed, (EXPERTS,)).to(tl.int32, bitcast=True)
    return bits ^ ((bits >> 31) & 0x7FFFFFFF)


@triton.jit
def _take_one_by_one(  # type: ignore[no-untyped-def]
    keys, EXPERTS: tl.constexpr, TOP_K: tl.constexpr, SLOT_BLOCK: tl.constexpr
):
    """Compute `_select_largest` where keys may be equal."""
    experts, slots = tl.arange(0, EXPERTS), tl.arange(0, SLOT_BLOCK)
    ids = tl.full((SLOT_BLOCK,), EXPERTS, tl.int32)
    for slot in range(TOP_K):
        best = tl.min(tl.where(keys == tl.max(keys, axis=0), experts, EXPERTS), axis=0)
        ids = tl.where(slots == slot, best, ids)
        keys = tl.where(experts == best, _TAKEN, keys)
    return ids


@triton.jit
def _select_largest(  # type: ignore[no-untyped-def]
    keys, EXPERTS: tl.constexpr, TOP_K: tl.constexpr, SLOT_BLOCK: tl.constexpr
):
    """Return the experts [SLOT_BLOCK] of the TOP_K largest keys [EXPERTS], the largest first.

    Of equal keys the lower index goes first. The slots after them have EXPERTS.
    """
    experts, slots = tl.arange(0, EXPERTS), tl.arange(0, SLOT_BLOCK)
    ids = tl.full((SLOT_BLOCK,), EXPERTS, tl.int32)
    # Equal keys are taken together, so the next maximum does not wait for an index: 3.6 instead of
    # 4.3 microseconds for the router of one row on an H100. If more than TOP_K were taken, some
    # were equal.
    remaining = keys
    for slot in tl.static_range(TOP_K):
        is_largest = remaining == tl.max(remaining, axis=0)
        best = tl.min(tl.where(is_largest, experts, EXPERTS), axis=0)
        ids = tl.where(slots == slot, best, ids)
        remaining = tl.where(is_largest, _TAKEN, remaining)
    if tl.sum((remaining == _TAKEN).to(tl.int32), axis=0) > TOP_K:
        ids = _take_one_by_one(keys, EXPERTS, TOP_K, SLOT_BLOCK)
    return ids


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
    scores = 1.0 / (1.0 + tl.exp(-raw))
    keys = _order_experts(scores + bias, EXPERTS, GROUPS, TOP_GROUPS)
    ids = _select_largest(keys, EXPERTS, TOP_K, SLOT_BLOCK)
    slots = tl.arange(0, SLOT_BLOCK)
    selected = tl.gather(scores, tl.minimum(ids, EXPERTS - 1), axis=0)
    selected = tl.where(slots < TOP_K, selected, 0.0)
    weights = selected / (tl.sum(selected, axis=0) + 1e-20) * scale
    # The shared expert has weight 1, beside the routed ones.
    return tl.where(slots == TOP_K, 1.0, weights), ids


@triton.jit
def _route_kernel(  # type: ignore[no-untyped-def]
    logits,
    bias,
    routes,
    weights,
    ids,
    row_stride,
    scale,
    EXPERTS: tl.constexpr,
    GROUPS: tl.constexpr,
    TOP_GROUPS: tl.constexpr,
    TOP_K: tl.constexpr,
    COLUMNS: tl.constexpr,
    SLOT_BLOCK: tl.constexpr,
    ROUTED: tl.constexpr,
):
    """Route one token."""
    token = tl.program_id(0).to(tl.int64)
    router = 0
    if ROUTED:
        router = tl.load(routes + token).to(tl.int32)
    experts = tl.arange(0, EXPERTS)
    token_logits = tl.load(logits + token * row_stride + router * EXPERTS + experts).to(tl.float32)
    token_bias = tl.load(bias + router * EXPERTS + experts)
    expert_weights, expert_ids = choose_experts(
        token_logits, token_bias, scale, EXPERTS, GROUPS, TOP_GROUPS, TOP_K, SLOT_BLOCK
    )
    slots = tl.arange(0, SLOT_BLOCK)
    offs = token * COLUMNS + slots
    tl.store(weights + offs, expert_weights, mask=slots < COLUMNS)
    tl.store(ids + offs, expert_ids, mask=slots < COLUMNS)


def select_experts_fused(
    logits: Tensor,
    bias: Tensor,
    routing: Routing,
    routes: Tensor | None = None,
    *,
    append_shared: bool = True,
) -> tuple[Tensor, Tensor]:
    """Select experts on a GPU as `routing.select_experts` and `append_shared_expert` do.

    The numbers of experts and groups must be powers of two.

    Args:
        logits: [tokens, experts] without `routes`, else [tokens, routers * experts].
        bias: float32 [routers, experts]; without `routes` the first row is used.
        routing: Numbers of experts and groups, and how they are chosen.
        routes: Route ids [tokens].
        append_shared: Whether the shared expert follows the routed ones.

    Returns:
        float32 weights and int32 ids, both [tokens, top_k], or [tokens, top_k + 1] with the shared
        expert.
    """
    tokens = logits.shape[0]
    assert logits.stride(1) == 1
    assert bias.is_contiguous()
    assert bias.dtype == torch.float32
    shape = tokens, routing.top_k + int(append_shared)
    weights = torch.empty(shape, dtype=torch.float32, device=logits.device)
    ids = torch.empty(shape, dtype=torch.int32, device=logits.device)
    if tokens:
        _route_kernel[(tokens,)](
            logits,
            bias,
            logits if routes is None else routes,
            weights,
            ids,
            logits.stride(0),
            routing.scale,
            EXPERTS=routing.experts,
            GROUPS=routing.groups,
            TOP_GROUPS=routing.top_groups,
            TOP_K=routing.top_k,
            COLUMNS=shape[1],
            SLOT_BLOCK=triton.next_power_of_2(routing.top_k + 1),
            ROUTED=routes is not None,
            num_warps=1,
        )
    return weights, ids
