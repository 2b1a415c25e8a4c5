"""Attention of a decode step: one query a head, over the cached keys and values, in one kernel.

SGLang's decode attention is two kernels, and its first waits for memory three times in a row after
the query is there: for the slots of the tokens, for their keys and for their values. Here, all that
belongs to older tokens is loaded while the kernel before still runs. Then the query and the newest
token are loaded at once, and the last program of a row and key head combines what the others found.
The plain form is `attend_plainly`.
"""

from dataclasses import dataclass
from functools import cache

import torch
import triton
import triton.language as tl
from torch import Tensor

from sglang_omni.kernels.pdl import LINE, prefetch_lines, wait_for_inputs
from sglang_omni.kernels.registers import MAX_REGISTERS
from sglang_omni.models.ming.thinker.small_batch_gemm_triton import MAX_ROWS

LOG2_E = 1.4426950408889634
WORKSPACE_PROGRAMS = 256
"""The most programs of a key head that share their sums: rows times splits."""


@dataclass(frozen=True)
class CachedTokens:
    """Keys and values of one layer, and where those of a batch's requests are.

    `keys` and `values` are [slots, kv_heads, head_dim]. `slots` [requests, context] has the slot of
    every token of every request. `requests` [rows] are the requests of a batch, and `lengths`
    [rows] their numbers of tokens, with the newest, which need not be in the cache yet.
    """

    keys: Tensor
    values: Tensor
    slots: Tensor
    requests: Tensor
    lengths: Tensor


@dataclass(frozen=True)
class AttentionTile:
    """Tokens that a program reads at once, programs of a row and key head, warps and stages."""

    tokens: int
    splits: int
    warps: int = 4
    stages: int = 2


# By rows; measured by `benchmarks.thinker.tune_attention` on an H200, and for one row in a whole
# layer. Some have more splits than is fastest for 256 tokens, for the sake of longer contexts.
TILES = {
    1: AttentionTile(64, 8),
    2: AttentionTile(32, 8, warps=8),
    4: AttentionTile(32, 8, warps=8),
    8: AttentionTile(64, 4, warps=8),
    16: AttentionTile(64, 4),
    32: AttentionTile(64, 2, stages=3),
    64: AttentionTile(64, 1, stages=3),
}


def select_tile(rows: int) -> AttentionTile:
    """Return the tiling for a number of rows."""
    return TILES[triton.next_power_of_2(rows)]


class AttentionWorkspace:
    """Memory for what the programs of a row and key head find, for all layers of one stream.

    `partial` are unnormalised sums of values, `partial_max` the maxima of the scores and
    `partial_total` the sums of their exponentials, each of a program and its heads. `arrived`
    counts programs and is 0 between kernels.
    """

    def __init__(self, heads: int, dim: int, device: torch.device) -> None:
        num_heads = WORKSPACE_PROGRAMS * heads
        self.partial = torch.empty(num_heads * dim, dtype=torch.float32, device=device)
        self.partial_max, self.partial_total = torch.empty(
            2, num_heads, dtype=torch.float32, device=device
        )
        self.arrived = torch.zeros(MAX_ROWS * heads, dtype=torch.int32, device=device)


@cache
def get_attention_workspace(heads: int, dim: int, device: torch.device) -> AttentionWorkspace:
    """Return the workspace of all layers of a model; its steps run on one stream."""
    return AttentionWorkspace(heads, dim, device)


@triton.jit
def _load_block(  # type: ignore[no-untyped-def]
    keys, values, row_slots, tokens, end, key_stride, value_stride, head_offsets
):
    """Load the keys and values [tokens, dim] of the tokens before `end`; zeros for others."""
    mask = tokens < end
    slots = tl.load(row_slots + tokens, mask=mask, other=0).to(tl.int64)[:, None]
    key = tl.load(keys + slots * key_stride + head_offsets, mask=mask[:, None], other=0.0)
    value = tl.load(values + slots * value_stride + head_offsets, mask=mask[:, None], other=0.0)
    return key, value, mask


@triton.jit
def _add_block(  # type: ignore[no-untyped-def]
    query, key, value, mask, scale, max_score, total, acc
):
    """Add a block of tokens to a running softmax: maxima, sums [heads], values [heads, dim]."""
    scores = tl.dot(query, tl.trans(key), input_precision="ieee") * scale
    scores = tl.where(mask[None, :], scores, float("-inf"))
    new_max = tl.maximum(max_score, tl.max(scores, axis=1))
    rescale = tl.exp2(max_score - new_max)
    weights = tl.exp2(scores - new_max[:, None])
    total = total * rescale + tl.sum(weights, axis=1)
    acc = acc * rescale[:, None] + tl.dot(weights.to(value.dtype), value, input_precision="ieee")
    return new_max, total, acc


@triton.jit
def _combine_parts(  # type: ignore[no-untyped-def]
    partial,
    partial_max,
    partial_total,
    num_parts,
    heads,
    is_head,
    part_offsets,
    SPLITS: tl.constexpr,
    GROUP: tl.constexpr,
    DIM: tl.constexpr,
):
    """Return the sums [heads] and values [heads, dim] of all parts of a row and key head.

    The pointers are to the first part. Other programs wrote them, so the L1 cache is not asked.
    """
    parts = tl.arange(0, SPLITS)
    offsets = parts[None, :] * GROUP + heads[:, None]
    mask = is_head[:, None] & (parts < num_parts)[None, :]
    all_max = tl.load(partial_max + offsets, mask=mask, other=float("-inf"), cache_modifier=".cg")
    all_totals = tl.load(partial_total + offsets, mask=mask, other=0.0, cache_modifier=".cg")
    # Rows of the block that are no head have no maximum.
    max_score = tl.where(is_head, tl.max(all_max, axis=1), 0.0)
    total = tl.sum(all_totals * tl.exp2(all_max - max_score[:, None]), axis=1)
    acc = tl.zeros(part_offsets.shape, tl.float32)
    # All loads are in flight at once; those of parts that do not exist read nothing.
    for index in tl.static_range(SPLITS):
        is_part = is_head & (index < num_parts)
        part_max = tl.load(
            partial_max + index * GROUP + heads,
            mask=is_part,
            other=float("-inf"),
            cache_modifier=".cg",
        )
        part_acc = tl.load(
            partial + index * GROUP * DIM + part_offsets,
            mask=is_part[:, None],
            other=0.0,
            cache_modifier=".cg",
        )
        acc += part_acc * tl.exp2(part_max - max_score)[:, None]
    return total, acc


@triton.jit
def _attention_kernel(  # type: ignore[no-untyped-def]
    query,
    new_key,
    new_value,
    keys,
    values,
    slots,
    requests,
    lengths,
    out,
    partial,
    partial_max,
    partial_total,
    arrived,
    scale,
    new_value_stride,
    key_stride,
    value_stride,
    slots_stride,
    KV_HEADS: tl.constexpr,
    GROUP: tl.constexpr,
    GROUP_BLOCK: tl.constexpr,
    DIM: tl.constexpr,
    LINES_WIDTH: tl.constexpr,
    TOKENS: tl.constexpr,
    SPLITS: tl.constexpr,
    STAGES: tl.constexpr,
    PDL: tl.constexpr,
):
    """Attend with the GROUP query heads of a key head to a part of one row's tokens.

    The older tokens of a row are cut into as many parts of whole blocks as there are programs, or
    fewer. The last part also has the newest token.
    """
    row, kv_head, split = tl.program_id(0).to(tl.int64), tl.program_id(1), tl.program_id(2)
    num_old = tl.load(lengths + row).to(tl.int32) - 1
    request = tl.load(requests + row).to(tl.int64)
    part = tl.maximum(tl.cdiv(tl.cdiv(num_old, SPLITS), TOKENS), 1) * TOKENS
    num_parts = tl.maximum(tl.cdiv(num_old, part), 1)
    # No request is below 0: with the comparison, both loads are waited for at once.
    if (split >= num_parts) | (request < 0):
        return
    row_slots = slots + request * slots_stride
    heads = tl.arange(0, GROUP_BLOCK)
    dims = tl.arange(0, DIM)
    is_head = heads < GROUP
    head_offsets = kv_head * DIM + dims[None, :]
    tokens = split * part + tl.arange(0, TOKENS)
    end = tl.minimum((split + 1) * part, num_old)
    # What is older than this step is there already. The compiler loads values when the keys are in
    # shared memory; by then they are in the cache.
    if PDL:
        lines = kv_head * DIM + tl.arange(0, DIM // LINES_WIDTH)[None, :] * LINES_WIDTH
        first_slots = tl.load(row_slots + tokens, mask=tokens < end, other=0).to(tl.int64)
        prefetch_lines(values + first_slots[:, None] * value_stride + lines)
    key, value, mask = _load_block(
        keys, values, row_slots, tokens, end, key_stride, value_stride, head_offsets
    )
    wait_for_inputs(PDL)
    first_head = (row * KV_HEADS + kv_head) * GROUP
    query_offsets = (first_head + heads)[:, None] * DIM + dims[None, :]
    rows = tl.load(query + query_offsets, mask=is_head[:, None], other=0.0)
    newest_key = tl.load(new_key + row * KV_HEADS * DIM + kv_head * DIM + dims)
    newest_value = tl.load(new_value + row * new_value_stride + kv_head * DIM + dims)

    newest_score = tl.sum(rows.to(tl.float32) * newest_key.to(tl.float32)[None, :], axis=1) * scale
    has_newest = split == num_parts - 1
    max_score = tl.where(has_newest, newest_score, float("-inf"))
    total = tl.where(has_newest & is_head, 1.0, 0.0)
    acc = total[:, None] * newest_value.to(tl.float32)[None, :]
    if num_old > 0:
        max_score, total, acc = _add_block(rows, key, value, mask, scale, max_score, total, acc)
        for start in tl.range(split * part + TOKENS, end, TOKENS, num_stages=STAGES):
            key, value, mask = _load_block(
                keys,
                values,
                row_slots,
                start + tl.arange(0, TOKENS),
                end,
                key_stride,
                value_stride,
                head_offsets,
            )
            max_score, total, acc = _add_block(rows, key, value, mask, scale, max_score, total, acc)

    is_last = True
    if num_parts > 1:
        # [row, key head, part, head of the group]
        first = (row * KV_HEADS + kv_head) * SPLITS * GROUP
        place = first + split * GROUP
        part_offsets = heads[:, None] * DIM + dims[None, :]
        tl.store(partial_max + place + heads, max_score, mask=is_head)
        tl.store(partial_total + place + heads, total, mask=is_head)
        tl.store(partial + place * DIM + part_offsets, acc, mask=is_head[:, None])
        tl.debug_barrier()
        counter = arrived + row * KV_HEADS + kv_head
        is_last = tl.atomic_add(counter, 1, sem="acq_rel") == num_parts - 1
        if is_last:
            tl.store(counter, 0)
            total, acc = _combine_parts(
                partial + first * DIM,
                partial_max + first,
                partial_total + first,
                num_parts,
                heads,
                is_head,
                part_offsets,
                SPLITS,
                GROUP,
                DIM,
            )
    if is_last:
        total = tl.where(is_head, total, 1.0)
        result = acc / total[:, None]
        tl.store(out + query_offsets, result.to(out.dtype.element_ty), mask=is_head[:, None])


def attend(
    query: Tensor,
    newest: tuple[Tensor, Tensor],
    cached: CachedTokens,
    heads: tuple[int, int],
    scale: float,
    tile: AttentionTile | None = None,
    pdl: bool = False,
) -> Tensor:
    """Return the attention of one new token a row: [rows, heads * head_dim].

    Args:
        query: [rows, heads * head_dim], at most `MAX_ROWS` rows.
        newest: Keys and values of the newest tokens, [rows, kv_heads * head_dim] each.
        cached: The older tokens.
        heads: Numbers of query and of key heads.
        scale: What the products of queries and keys are multiplied by.
        tile: Sizes of the tiles; None for those that suit the number of rows.
        pdl: Launch with programmatic dependent launch. The kernel before must write neither the
            older tokens' keys and values nor the slots, requests and lengths.
    """
    rows, (num_heads, kv_heads) = len(query), heads
    dim, group = query.shape[1] // num_heads, num_heads // kv_heads
    assert 0 < rows <= MAX_ROWS
    assert dim == triton.next_power_of_2(dim)
    new_key, new_value = newest
    assert query.is_contiguous()
    assert new_key.is_contiguous()
    assert new_value.stride(1) == 1
    assert all(x.stride()[1:] == (dim, 1) for x in (cached.keys, cached.values))
    assert cached.slots.stride(1) == 1
    tile = tile or select_tile(rows)
    space = get_attention_workspace(num_heads, dim, query.device)
    assert rows * tile.splits <= WORKSPACE_PROGRAMS
    out = torch.empty_like(query)
    _attention_kernel[(rows, kv_heads, tile.splits)](
        query,
        new_key,
        new_value,
        cached.keys,
        cached.values,
        cached.slots,
        cached.requests,
        cached.lengths,
        out,
        space.partial,
        space.partial_max,
        space.partial_total,
        space.arrived,
        scale * LOG2_E,
        new_value.stride(0),
        cached.keys.stride(0),
        cached.values.stride(0),
        cached.slots.stride(0),
        KV_HEADS=kv_heads,
        GROUP=group,
        GROUP_BLOCK=max(16, triton.next_power_of_2(group)),
        DIM=dim,
        LINES_WIDTH=min(dim, LINE),
        TOKENS=tile.tokens,
        SPLITS=tile.splits,
        STAGES=tile.stages,
        PDL=pdl,
        num_warps=tile.warps,
        maxnreg=MAX_REGISTERS,
        launch_pdl=pdl,
    )
    return out


def attend_plainly(
    query: Tensor,
    newest: tuple[Tensor, Tensor],
    cached: CachedTokens,
    heads: tuple[int, int],
    scale: float,
) -> Tensor:
    """Compute `attend` in plain PyTorch and float32, row by row: [rows, heads * head_dim]."""
    num_heads, kv_heads = heads
    dim = query.shape[1] // num_heads
    out = []
    for row, (request, length) in enumerate(
        zip(cached.requests.tolist(), cached.lengths.tolist(), strict=True)
    ):
        slots = cached.slots[request, : length - 1].long()
        key, value = (
            torch.cat([stored[slots], new[row].view(1, kv_heads, dim)])
            .float()
            .repeat_interleave(num_heads // kv_heads, dim=1)
            for stored, new in zip((cached.keys, cached.values), newest, strict=True)
        )
        scores = torch.einsum("hd,thd->ht", query[row].view(num_heads, dim).float(), key) * scale
        out.append(torch.einsum("ht,thd->hd", scores.softmax(-1), value).flatten())
    return torch.stack(out)
