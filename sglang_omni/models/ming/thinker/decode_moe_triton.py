"""What stands around the products of a decode step's experts: their order, SwiGLU and the sum.

SGLang has two kernels for the order, two between the products and a generic one for the sum; for
few rows each costs more to start than to run. Where `pdl`, a kernel starts before the one in
front of it has ended. The plain forms are in the tests.
"""

from dataclasses import dataclass

import torch
import triton
import triton.language as tl
from torch import Tensor

from sglang_omni.kernels.pdl import prefetch_part, view_as_bytes, wait_for_inputs
from sglang_omni.models.ming.thinker.fp8_layout import BLOCK
from sglang_omni.models.ming.thinker.fp8_triton import empty_rows, to_eight_bits

SUM_COLUMNS = 1024


@dataclass(frozen=True)
class Order:
    """Rows by expert, in tiles that have one expert each, as SGLang's products want them.

    `slots` are indices into the flat ids, each expert's filled up to whole tiles with the number of
    ids; `experts` has one for each tile; `total` is the number of slots in use.
    """

    slots: Tensor
    experts: Tensor
    total: Tensor


@triton.jit
def _group_kernel(  # type: ignore[no-untyped-def]
    ids,
    slots,
    experts,
    total,
    ahead,
    lines,
    TOKENS,
    TOP_K: tl.constexpr,
    TOKENS_PAD: tl.constexpr,
    HEIGHT: tl.constexpr,
    FETCH: tl.constexpr,
    PDL: tl.constexpr,
):
    """One expert takes as many tiles as its rows need, wherever the next ones are free: which comes
    first changes where rows are computed, not what."""
    # The shared expert, whose weight is on its way, is likely the first then.
    expert = tl.num_programs(0) - 1 - tl.program_id(0)
    if FETCH:
        prefetch_part(ahead, lines, tl.program_id(0), tl.num_programs(0))
    tokens = tl.arange(0, TOKENS_PAD)
    wait_for_inputs(PDL)
    # Without sums across threads: a token has an expert once at most.
    mine = tl.zeros((TOKENS_PAD,), tl.int32)
    rank = tl.zeros((TOKENS_PAD,), tl.int32)
    for one in tl.static_range(TOP_K):
        held = tl.load(ids + tokens * TOP_K + one, mask=tokens < TOKENS, other=-1)
        mine += (held == expert).to(tl.int32)
        rank += (held == expert).to(tl.int32) * one
    rows = tl.sum(mine, axis=0)
    if rows > 0:
        tiles = (rows + HEIGHT - 1) // HEIGHT
        start = tl.atomic_add(total, tiles * HEIGHT)
        place = slots + start + tl.cumsum(mine, axis=0) - 1
        tl.store(place, tokens * TOP_K + rank, mask=mine > 0)
        spare = rows + tl.arange(0, HEIGHT)
        tl.store(slots + start + spare, spare * 0 + TOKENS * TOP_K, mask=spare < tiles * HEIGHT)
        # As many tiles as there are tokens are enough for any height.
        tl.store(experts + start // HEIGHT + tokens, tokens * 0 + expert, mask=tokens < tiles)


def group_by_expert(
    ids: Tensor,
    experts: int,
    height: int,
    total: Tensor,
    ahead: Tensor | None = None,
    pdl: bool = False,
) -> Order:
    """Order the expert ids [tokens, top_k] (int32) for tiles of `height` rows. A token has each
    expert once at most. `total` is one int32, zero, and becomes the order's. `ahead` is a weight
    that is read next in any case."""
    tokens, top_k = ids.shape
    count = ids.numel()
    assert ids.is_contiguous()
    tiles = min(count, (count + experts * (height - 1)) // height)
    slots = torch.empty(tiles * height, dtype=torch.int32, device=ids.device)
    order = Order(slots, torch.empty(tiles, dtype=torch.int32, device=ids.device), total)
    data, lines = (ids, 0) if ahead is None else view_as_bytes(ahead)
    _group_kernel[(experts,)](
        ids,
        order.slots,
        order.experts,
        order.total,
        data,
        lines,
        tokens,
        TOP_K=top_k,
        TOKENS_PAD=triton.next_power_of_2(tokens),
        HEIGHT=height,
        FETCH=ahead is not None,
        PDL=pdl,
        num_warps=1,
        launch_pdl=pdl,
    )
    return order


@triton.jit
def _activate_kernel(  # type: ignore[no-untyped-def]
    gate_up,
    out,
    scales,
    WIDTH: tl.constexpr,
    BLOCK: tl.constexpr,
    BLOCKS: tl.constexpr,
    PDL: tl.constexpr,
):
    """One row."""
    row = tl.program_id(0)
    wait_for_inputs(PDL)
    blocks = tl.arange(0, BLOCKS)
    exists = blocks < WIDTH // BLOCK
    at = blocks[:, None] * BLOCK + tl.arange(0, BLOCK)[None, :]
    gate = tl.load(gate_up + row * 2 * WIDTH + at, mask=exists[:, None], other=0.0).to(tl.float32)
    up = tl.load(gate_up + row * 2 * WIDTH + WIDTH + at, mask=exists[:, None], other=0.0)
    made, factors = to_eight_bits(gate / (1.0 + tl.exp(-gate)) * up.to(tl.float32))
    tl.store(out + row * WIDTH + at, made, mask=exists[:, None])
    tl.store(scales + row * (WIDTH // BLOCK) + blocks, factors, mask=exists)


def activate(gate_up: Tensor, pdl: bool = False) -> tuple[Tensor, Tensor]:
    """silu(gate) * up of gate_up [rows, 2 * width] in eight bits: values [rows, width], and scales
    [rows, width / 128]. It rounds once, where SGLang's two kernels round to bfloat16 between."""
    rows, width = gate_up.shape[0], gate_up.shape[1] // 2
    assert gate_up.is_contiguous() and width % BLOCK == 0
    out, scales = empty_rows(rows, width, gate_up.device)
    _activate_kernel[(rows,)](
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
    """Some columns of one token."""
    token = tl.program_id(0)
    cols = tl.program_id(1) * COLUMNS + tl.arange(0, COLUMNS)
    inside = cols < WIDTH
    wait_for_inputs(PDL)
    acc = tl.zeros((COLUMNS,), tl.float32)
    for part in tl.static_range(COUNT):
        held = tl.load(parts + (token * COUNT + part) * WIDTH + cols, mask=inside, other=0.0)
        acc += held.to(tl.float32)
    tl.store(out + token * WIDTH + cols, acc.to(out.dtype.element_ty), mask=inside)


def sum_experts(parts: Tensor, pdl: bool = False) -> Tensor:
    """The sums [tokens, hidden] of what a token's experts gave, parts [tokens, top_k, hidden]."""
    tokens, count, width = parts.shape
    assert parts.is_contiguous()
    out = torch.empty(tokens, width, dtype=parts.dtype, device=parts.device)
    _sum_kernel[(tokens, triton.cdiv(width, SUM_COLUMNS))](
        parts,
        out,
        WIDTH=width,
        COUNT=count,
        COLUMNS=SUM_COLUMNS,
        PDL=pdl,
        num_warps=4,
        launch_pdl=pdl,
    )
    return out
