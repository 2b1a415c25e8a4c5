"""A decode step's router: logits, experts and rows in eight bits, in two kernels.

The first multiplies few rows by the text router's weight, in shares of the sum over the width, so
that many programs read the weight at once. The second adds the shares, rounds logits as a product
of its own would, and chooses; beside it, programs bring the rows to eight bits for the experts. The
plain form is `F.linear`, `routing.route` and `fp8.quantise` row by row.
"""

from dataclasses import dataclass

import torch
import triton
import triton.language as tl
from torch import Tensor

from sglang_omni.kernels.pdl import wait_for_inputs
from sglang_omni.models.ming.thinker.fp8_layout import BLOCK
from sglang_omni.models.ming.thinker.fp8_triton import (
    BLOCKS_PER_PROGRAM,
    empty_rows,
    quantise_blocks,
)
from sglang_omni.models.ming.thinker.routing import Routing
from sglang_omni.models.ming.thinker.routing_triton import choose_experts

SHARE = 256
"""Columns of the width that one program sums: all that it reads is on its way at once."""
EXPERTS_PER_PROGRAM = 32


@dataclass(frozen=True)
class Routed:
    """What the experts of a step need of its rows x [tokens, hidden].

    `weights` (float32) and `ids` (int32) are [tokens, top_k + 1], the shared expert last; `logits`
    [tokens, experts] have the dtype of x. `rows` is x in float8_e4m3fn, `scales` [tokens, hidden /
    128] float32. `places` is one int32, zero, for `experts_triton.group_by_expert` to count in.
    """

    weights: Tensor
    ids: Tensor
    logits: Tensor
    rows: Tensor
    scales: Tensor
    places: Tensor


@triton.jit
def _logits_kernel(  # type: ignore[no-untyped-def]
    x,
    weight,
    partial,
    M,
    EXPERTS: tl.constexpr,
    K: tl.constexpr,
    SHARE: tl.constexpr,
    BM: tl.constexpr,
    BN: tl.constexpr,
    PRECISION: tl.constexpr,
    PDL: tl.constexpr,
):
    """One share of the sums [BM, BN] of some experts."""
    tile, share = tl.program_id(0), tl.program_id(1)
    experts, rows = tile * BN + tl.arange(0, BN), tl.arange(0, BM)
    depth = share * SHARE + tl.arange(0, SHARE)
    row_in = rows[:, None] < M
    # The weight depends on nothing: it travels while the kernel ahead still runs.
    w = tl.load(weight + experts[:, None] * K + depth[None, :])
    wait_for_inputs(PDL)
    held = tl.load(x + rows[:, None] * K + depth[None, :], mask=row_in, other=0.0)
    acc = tl.dot(held, tl.trans(w), input_precision=PRECISION)
    at = (share * M + rows[:, None]) * EXPERTS + experts[None, :]
    tl.store(partial + at, acc, mask=row_in & (experts[None, :] < EXPERTS))


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
    SHARES: tl.constexpr,
    PDL: tl.constexpr,
):
    """Add the shares of a token's logits, in a fixed order, and choose its experts."""
    experts, slots = tl.arange(0, EXPERTS), tl.arange(0, SLOT_BLOCK)
    biases = tl.load(bias + experts)
    wait_for_inputs(PDL)
    total = tl.zeros((EXPERTS,), tl.float32)
    for share in tl.static_range(SHARES):
        total += tl.load(partial + (share * M + token) * EXPERTS + experts)
    rounded = total.to(logits.dtype.element_ty)
    tl.store(logits + token * EXPERTS + experts, rounded)
    shares, chosen = choose_experts(
        rounded.to(tl.float32), biases, scale, EXPERTS, GROUPS, TOP_GROUPS, TOP_K, SLOT_BLOCK
    )
    at = token * (TOP_K + 1) + slots
    tl.store(weights + at, shares, mask=slots <= TOP_K)
    tl.store(ids + at, chosen, mask=slots <= TOP_K)


@triton.jit
def _finish_kernel(  # type: ignore[no-untyped-def]
    partial,
    bias,
    x,
    weights,
    ids,
    logits,
    quantised,
    scales,
    places,
    M,
    scale,
    EXPERTS: tl.constexpr,
    GROUPS: tl.constexpr,
    TOP_GROUPS: tl.constexpr,
    TOP_K: tl.constexpr,
    SLOT_BLOCK: tl.constexpr,
    SHARES: tl.constexpr,
    K: tl.constexpr,
    BLOCK: tl.constexpr,
    BLOCKS: tl.constexpr,
    PDL: tl.constexpr,
):
    """One token: its experts, or, in the other programs, BLOCKS blocks of it in eight bits."""
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
            SHARES,
            PDL,
        )
        if token == 0:
            tl.store(places, 0)
    else:
        wait_for_inputs(PDL)
        quantise_blocks(x, quantised, scales, token, (part - 1) * BLOCKS, K, BLOCK, BLOCKS)


def can_route_rows(experts: int, hidden: int) -> bool:
    """Whether sizes are those that the kernels cut evenly."""
    return experts % EXPERTS_PER_PROGRAM == 0 and hidden % SHARE == 0


def _room_for(x: Tensor, routing: Routing) -> Routed:
    """What the kernels write of rows x [tokens, hidden], not written yet."""
    (tokens, hidden), device = x.shape, x.device
    slots = tokens, routing.top_k + 1
    rows, scales = empty_rows(tokens, hidden, device)
    return Routed(
        weights=torch.empty(slots, dtype=torch.float32, device=device),
        ids=torch.empty(slots, dtype=torch.int32, device=device),
        logits=torch.empty(tokens, routing.experts, dtype=x.dtype, device=device),
        rows=rows,
        scales=scales,
        places=torch.empty(1, dtype=torch.int32, device=device),
    )


def route_rows(
    x: Tensor, weight: Tensor, bias: Tensor, routing: Routing, pdl: bool = False
) -> Routed:
    """Choose experts for the rows x [tokens, hidden] of a decode step, one at least.

    `weight` is [experts, hidden], `bias` [experts] float32. Where `pdl`, both are read before
    the kernel ahead has ended.
    """
    (tokens, hidden), device = x.shape, x.device
    experts, shares = routing.experts, hidden // SHARE
    assert can_route_rows(experts, hidden) and x.is_contiguous() and weight.is_contiguous()
    assert bias.is_contiguous() and bias.dtype == torch.float32
    partial = torch.empty(shares, tokens, experts, dtype=torch.float32, device=device)
    _logits_kernel[(experts // EXPERTS_PER_PROGRAM, shares)](
        x,
        weight,
        partial,
        tokens,
        EXPERTS=experts,
        K=hidden,
        SHARE=SHARE,
        BM=max(16, triton.next_power_of_2(tokens)),
        BN=EXPERTS_PER_PROGRAM,
        PRECISION="ieee" if x.dtype == torch.float32 else "tf32",
        PDL=pdl,
        num_warps=4,
        launch_pdl=pdl,
    )
    routed = _room_for(x, routing)
    parts = triton.cdiv(hidden // BLOCK, BLOCKS_PER_PROGRAM)
    _finish_kernel[(tokens, 1 + parts)](
        partial,
        bias,
        x,
        routed.weights,
        routed.ids,
        routed.logits,
        routed.rows,
        routed.scales,
        routed.places,
        tokens,
        routing.scale,
        EXPERTS=experts,
        GROUPS=routing.groups,
        TOP_GROUPS=routing.top_groups,
        TOP_K=routing.top_k,
        SLOT_BLOCK=triton.next_power_of_2(routing.top_k + 1),
        SHARES=shares,
        K=hidden,
        BLOCK=BLOCK,
        BLOCKS=BLOCKS_PER_PROGRAM,
        PDL=pdl,
        num_warps=1,
        launch_pdl=pdl,
    )
    return routed
