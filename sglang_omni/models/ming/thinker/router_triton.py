"""Router of a decode step in two kernels: logits, selected experts and FP8 rows.

The first kernel multiplies a small batch by the weight of the text router, split over the hidden
size (split-K), so that many programs read the weight at once. The second adds the partial sums,
rounds the logits as a separate product would, and selects experts; for experts in FP8, its other
programs quantize the rows. The plain form is `F.linear`, `routing.select_experts` and
`fp8.quantize_weight` per row.
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
    [tokens, experts] have the dtype of x. `total_slots` is one int32 counter, zero, for
    `decode_moe_triton.group_by_expert`.
    """

    weights: Tensor
    ids: Tensor
    logits: Tensor
    total_slots: Tensor


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


def supports_router_sizes(experts: int, hidden: int) -> bool:
    """Whether the kernels divide these sizes evenly."""
    return experts % EXPERTS_PER_PROGRAM == 0 and hidden % COLUMNS_PER_SPLIT == 0


def _allocate_routed_tokens(x: Tensor, routing: Routing) -> RoutedTokens:
    """Allocate the outputs for rows x [tokens, hidden]."""
    tokens, device = len(x), x.device
    slots = tokens, routing.top_k + 1
    return RoutedTokens(
        weights=torch.empty(slots, dtype=torch.float32, device=device),
        ids=torch.empty(slots, dtype=torch.int32, device=device),
        logits=torch.empty(tokens, routing.experts, dtype=x.dtype, device=device),
        total_slots=torch.empty(1, dtype=torch.int32, device=device),
    )


def route_tokens(
    x: Tensor, weight: Tensor, bias: Tensor, routing: Routing, pdl: bool = False
) -> RoutedTokens:
    """Select experts for the rows of a decode step, of which there is at least one.

    Args:
        x: Contiguous [tokens, hidden].
        weight: [experts, hidden].
        bias: float32 [experts].
        routing: Numbers of experts and groups, and how they are chosen.
        pdl: Launch with programmatic dependent launch. The kernels then read weight and bias before
            the previous kernel has ended.
    """
    routed = _allocate_routed_tokens(x, routing)
    _route(x, weight, bias, routing, routed, None, pdl)
    return routed


def route_rows(
    x: Tensor, weight: Tensor, bias: Tensor, routing: Routing, pdl: bool = False
) -> RoutedRows:
    """Select experts for the rows of a decode step, and quantize the rows to FP8.

    The arguments are those of `route_tokens`.
    """
    routed = _allocate_routed_tokens(x, routing)
    tokens, hidden = x.shape
    rows, scales = allocate_fp8_rows(tokens, hidden, x.device)
    _route(x, weight, bias, routing, routed, (rows, scales), pdl)
    return RoutedRows(**vars(routed), rows=rows, scales=scales)


def _route(
    x: Tensor,
    weight: Tensor,
    bias: Tensor,
    routing: Routing,
    routed: RoutedTokens,
    fp8_rows: tuple[Tensor, Tensor] | None,
    pdl: bool,
) -> None:
    """Fill `routed`, and `fp8_rows` (values and scales) if given."""
    (tokens, hidden), device = x.shape, x.device
    experts, splits = routing.experts, hidden // COLUMNS_PER_SPLIT
    assert supports_router_sizes(experts, hidden)
    assert x.is_contiguous()
    assert weight.is_contiguous()
    assert bias.is_contiguous()
    assert bias.dtype == torch.float32
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
    # Without rows to quantize, no program reads or writes the two tensors.
    rows, scales = fp8_rows or (x, partial)
    parts = 0 if fp8_rows is None else triton.cdiv(hidden // BLOCK, BLOCKS_PER_PROGRAM)
    _route_and_quantize_kernel[(tokens, 1 + parts)](
        partial,
        bias,
        x,
        routed.weights,
        routed.ids,
        routed.logits,
        rows,
        scales,
        routed.total_slots,
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
