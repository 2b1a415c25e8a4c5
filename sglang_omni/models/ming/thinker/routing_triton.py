"""Group-limited routing in one kernel: router choice, experts and the shared expert's column."""

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
    """Weights and ids [SLOT_BLOCK] for one token's logits and biases [EXPERTS] in float32, the
    shared expert in slot TOP_K. Ties go to the lower index."""
    experts = tl.arange(0, EXPERTS)
    scores = 1.0 / (1.0 + tl.exp(-raw))
    choice = scores + bias

    SIZE: tl.constexpr = EXPERTS // GROUPS
    grouped = tl.reshape(choice, (GROUPS, SIZE))
    largest = tl.argmax(grouped, axis=1)
    others = tl.where(tl.arange(0, SIZE)[None, :] == largest[:, None], float("-inf"), grouped)
    judged = tl.max(grouped, axis=1) + tl.max(others, axis=1)
    # A group is open if fewer than TOP_GROUPS come before it.
    group = tl.arange(0, GROUPS)
    tied = (judged[None, :] == judged[:, None]) & (group[None, :] < group[:, None])
    before = tl.sum(((judged[None, :] > judged[:, None]) | tied).to(tl.int32), axis=1)
    opened = tl.where((before < TOP_GROUPS)[:, None], grouped, float("-inf"))

    # As integers of the same order: a warp finds the largest of those in one instruction.
    bits = tl.reshape(opened, (EXPERTS,)).to(tl.int32, bitcast=True)
    left = bits ^ ((bits >> 31) & 0x7FFFFFFF)
    slots = tl.arange(0, SLOT_BLOCK)
    ids = tl.full((SLOT_BLOCK,), EXPERTS, tl.int32)
    for slot in tl.static_range(TOP_K):
        best = tl.min(tl.where(left == tl.max(left, axis=0), experts, EXPERTS), axis=0)
        ids = tl.where(slots == slot, best, ids)
        left = tl.where(experts == best, -0x80000000, left)
    chosen = tl.gather(scores, tl.minimum(ids, EXPERTS - 1), axis=0)
    chosen = tl.where(slots < TOP_K, chosen, 0.0)
    share = chosen / (tl.sum(chosen, axis=0) + 1e-20) * scale
    # The shared expert takes part in full, beside the routed ones.
    return tl.where(slots == TOP_K, 1.0, share), ids


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
    SLOT_BLOCK: tl.constexpr,
    ROUTED: tl.constexpr,
):
    """One token."""
    token = tl.program_id(0).to(tl.int64)
    router = 0
    if ROUTED:
        router = tl.load(routes + token).to(tl.int32)
    experts = tl.arange(0, EXPERTS)
    raw = tl.load(logits + token * row_stride + router * EXPERTS + experts).to(tl.float32)
    biases = tl.load(bias + router * EXPERTS + experts)
    share, chosen = choose_experts(
        raw, biases, scale, EXPERTS, GROUPS, TOP_GROUPS, TOP_K, SLOT_BLOCK
    )
    slots = tl.arange(0, SLOT_BLOCK)
    at = token * (TOP_K + 1) + slots
    tl.store(weights + at, share, mask=slots <= TOP_K)
    tl.store(ids + at, chosen, mask=slots <= TOP_K)


def route_fused(
    logits: Tensor, bias: Tensor, routing: Routing, routes: Tensor | None = None
) -> tuple[Tensor, Tensor]:
    """Select experts as `routing.route` and `with_shared_expert` do, on a GPU.

    Without `routes`, `logits` is [tokens, experts], and the first row of `bias` [routers, experts]
    (float32) is used; with route ids [tokens], `logits` is [tokens, routers * experts]. Returns
    float32 weights and int32 ids, both [tokens, top_k + 1]. Numbers of experts and groups must be
    powers of two.
    """
    tokens = logits.shape[0]
    assert logits.stride(1) == 1 and bias.is_contiguous() and bias.dtype == torch.float32
    shape = tokens, routing.top_k + 1
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
            SLOT_BLOCK=triton.next_power_of_2(routing.top_k + 1),
            ROUTED=routes is not None,
            num_warps=1,
        )
    return weights, ids
