"""Group-limited routing in one kernel: router selection, experts and the shared expert."""

import torch
import triton
import triton.language as tl
from torch import Tensor

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
