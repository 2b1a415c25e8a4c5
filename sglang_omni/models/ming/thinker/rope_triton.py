"""QK-norm, partial rotation and the write to the KV cache, in one pass over a projection.

In a decode step attention waits more than it reads; programs beside those of the heads ask for the
weight of the product after it meanwhile.
"""

from dataclasses import dataclass

import torch
import triton
import triton.language as tl
from torch import Tensor

from sglang_omni.kernels.pdl import prefetch_part, view_as_bytes, wait_for_inputs

HEADS_PER_PROGRAM = 8
FETCHING = 132
"""Programs that ask for a weight: as many as a card has multiprocessors."""


@dataclass(frozen=True)
class Cache:
    """One layer's key and value buffers [slots, kv_heads, head_dim] and each token's slot."""

    keys: Tensor
    values: Tensor
    slots: Tensor


@triton.jit
def _prepare_kernel(  # type: ignore[no-untyped-def]
    qkv,
    q_gain,
    k_gain,
    cos,
    sin,
    q_out,
    k_out,
    key_cache,
    value_cache,
    slots,
    ahead,
    lines,
    qkv_stride,
    key_stride,
    value_stride,
    eps,
    HEADS: tl.constexpr,
    KV_HEADS: tl.constexpr,
    DIM: tl.constexpr,
    DIM_BLOCK: tl.constexpr,
    HALF: tl.constexpr,
    BLOCK: tl.constexpr,
    STORE: tl.constexpr,
    FETCH: tl.constexpr,
    PDL: tl.constexpr,
):
    """BLOCK heads of one token: query heads, then key and value heads; where FETCH, each token's
    other programs ask for `ahead`."""
    token = tl.program_id(0).to(tl.int64)
    QUERY_BLOCKS: tl.constexpr = (HEADS + BLOCK - 1) // BLOCK
    if FETCH:
        others: tl.constexpr = QUERY_BLOCKS + (KV_HEADS + BLOCK - 1) // BLOCK
        if tl.program_id(1) >= others:
            part = (tl.program_id(1) - others) * tl.num_programs(0) + tl.program_id(0)
            prefetch_part(ahead, lines, part, (tl.num_programs(1) - others) * tl.num_programs(0))
            return
    wait_for_inputs(PDL)
    is_key = tl.program_id(1) >= QUERY_BLOCKS
    block = tl.program_id(1) - tl.where(is_key, QUERY_BLOCKS, 0)
    heads = (block * BLOCK + tl.arange(0, BLOCK))[:, None]
    dims = tl.arange(0, DIM_BLOCK)[None, :]
    count = tl.where(is_key, KV_HEADS, HEADS)
    inside = (heads < count) & (dims < DIM)

    # The partner that a rotated dimension is mixed with; the others stay by themselves.
    partner = tl.where(dims < HALF, dims + HALF, tl.where(dims < 2 * HALF, dims - HALF, dims))
    row = qkv + token * qkv_stride + (tl.where(is_key, HEADS, 0) + heads) * DIM
    x = tl.load(row + dims, mask=inside, other=0.0).to(tl.float32)
    y = tl.load(row + partner, mask=inside, other=0.0).to(tl.float32)
    gain = tl.where(is_key, 1, 0)
    of_x = tl.load(q_gain + dims, mask=(dims < DIM) & (gain == 0), other=0.0).to(tl.float32)
    of_x += tl.load(k_gain + dims, mask=(dims < DIM) & (gain == 1), other=0.0).to(tl.float32)
    of_y = tl.load(q_gain + partner, mask=(dims < DIM) & (gain == 0), other=0.0).to(tl.float32)
    of_y += tl.load(k_gain + partner, mask=(dims < DIM) & (gain == 1), other=0.0).to(tl.float32)

    scale = tl.rsqrt(tl.sum(x * x, axis=1) / DIM + eps)[:, None]
    rotated = dims < 2 * HALF
    angle = token * HALF + tl.where(dims < HALF, dims, dims - HALF)
    c = tl.load(cos + angle, mask=rotated, other=1.0)
    s = tl.load(sin + angle, mask=rotated, other=0.0)
    s = tl.where(dims < HALF, -s, s)
    out = x * scale * of_x * c + y * scale * of_y * s

    if is_key:
        at = (token * KV_HEADS + heads) * DIM + dims
        tl.store(k_out + at, out.to(k_out.dtype.element_ty), mask=inside)
        if STORE:
            slot = tl.load(slots + token).to(tl.int64)
            v = tl.load(row + KV_HEADS * DIM + dims, mask=inside, other=0.0)
            place = heads * DIM + dims
            keys = out.to(key_cache.dtype.element_ty)
            tl.store(key_cache + slot * key_stride + place, keys, mask=inside)
            tl.store(value_cache + slot * value_stride + place, v, mask=inside)
    else:
        at = (token * HEADS + heads) * DIM + dims
        tl.store(q_out + at, out.to(q_out.dtype.element_ty), mask=inside)


def prepare_fused(
    qkv: Tensor,
    gains: tuple[Tensor, Tensor],
    tables: tuple[Tensor, Tensor],
    heads: tuple[int, int],
    eps: float,
    cache: Cache | None,
    ahead: Tensor | None = None,
    pdl: bool = False,
) -> tuple[Tensor, Tensor]:
    """Queries [tokens, heads * head_dim] and keys [tokens, kv_heads * head_dim] of a projection
    qkv [tokens, (heads + 2 * kv_heads) * head_dim], normalised and rotated.

    `gains` are those of the norms of queries and keys [head_dim], `tables` cos and sin
    [tokens, rotary_dim / 2] in float32, `heads` the numbers of query and of key heads. With a
    `cache`, keys and values are stored in it as well. It computes in float32 and rounds once.
    `ahead` is a weight that the product after attention reads. Where `pdl`, this starts before
    the kernel in front has ended.
    """
    tokens, dim = qkv.shape[0], gains[0].shape[0]
    assert qkv.stride(1) == 1 and all(table.is_contiguous() for table in tables)
    q, k = (torch.empty(tokens, n * dim, dtype=qkv.dtype, device=qkv.device) for n in heads)
    if tokens:
        block = HEADS_PER_PROGRAM
        programs = triton.cdiv(heads[0], block) + triton.cdiv(heads[1], block)
        fetching = 0 if ahead is None else triton.cdiv(FETCHING, tokens)
        data, lines = (k, 0) if ahead is None else view_as_bytes(ahead)
        _prepare_kernel[(tokens, programs + fetching)](
            qkv,
            *gains,
            *tables,
            q,
            k,
            k if cache is None else cache.keys,
            k if cache is None else cache.values,
            k if cache is None else cache.slots,
            data,
            lines,
            qkv.stride(0),
            0 if cache is None else cache.keys.stride(0),
            0 if cache is None else cache.values.stride(0),
            eps,
            HEADS=heads[0],
            KV_HEADS=heads[1],
            DIM=dim,
            DIM_BLOCK=triton.next_power_of_2(dim),
            HALF=tables[0].shape[1],
            BLOCK=block,
            STORE=cache is not None,
            FETCH=ahead is not None,
            PDL=pdl,
            num_warps=4,
            launch_pdl=pdl,
        )
    return q, k
