"""QK-norm, partial rotary embedding and the write to the KV cache, in one kernel.

In a decode step, attention waits more than it reads. So additional programs prefetch the weight
of the product after attention.
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

HEADS_PER_PROGRAM = 8


@dataclass(frozen=True)
class LayerKVCache:
    """Key and value buffers [slots, kv_heads, head_dim] of one layer, and the slot per token."""

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
    prefetch_weight,
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
    PREFETCH: tl.constexpr,
    PDL: tl.constexpr,
):
    """Compute BLOCK heads of one token: query heads, then key and value heads.

    With PREFETCH, the remaining programs of each token prefetch `prefetch_weight`.
    """
    token = tl.program_id(0).to(tl.int64)
    QUERY_BLOCKS: tl.constexpr = (HEADS + BLOCK - 1) // BLOCK
    if PREFETCH:
        num_head_programs: tl.constexpr = QUERY_BLOCKS + (KV_HEADS + BLOCK - 1) // BLOCK
        if tl.program_id(1) >= num_head_programs:
            part = (tl.program_id(1) - num_head_programs) * tl.num_programs(0) + tl.program_id(0)
            prefetch_part(
                prefetch_weight,
                lines,
                part,
                (tl.num_programs(1) - num_head_programs) * tl.num_programs(0),
            )
            return
    wait_for_inputs(PDL)
    is_key = tl.program_id(1) >= QUERY_BLOCKS
    block = tl.program_id(1) - tl.where(is_key, QUERY_BLOCKS, 0)
    heads = (block * BLOCK + tl.arange(0, BLOCK))[:, None]
    dims = tl.arange(0, DIM_BLOCK)[None, :]
    num_heads = tl.where(is_key, KV_HEADS, HEADS)
    mask = (heads < num_heads) & (dims < DIM)

    # The partner of each rotated dimension; other dimensions are their own partner.
    partner = tl.where(dims < HALF, dims + HALF, tl.where(dims < 2 * HALF, dims - HALF, dims))
    row = qkv + token * qkv_stride + (tl.where(is_key, HEADS, 0) + heads) * DIM
    x = tl.load(row + dims, mask=mask, other=0.0).to(tl.float32)
    y = tl.load(row + partner, mask=mask, other=0.0).to(tl.float32)
    if STORE:
        # Loaded with the rest, so that the stores wait for memory once.
        slot = tl.load(slots + token).to(tl.int64)
        v = tl.load(row + KV_HEADS * DIM + dims, mask=mask & is_key, other=0.0)
    is_key_gain = tl.where(is_key, 1, 0)
    x_gain = tl.load(q_gain + dims, mask=(dims < DIM) & (is_key_gain == 0), other=0.0).to(
        tl.float32
    )
    x_gain += tl.load(k_gain + dims, mask=(dims < DIM) & (is_key_gain == 1), other=0.0).to(
        tl.float32
    )
    y_gain = tl.load(q_gain + partner, mask=(dims < DIM) & (is_key_gain == 0), other=0.0).to(
        tl.float32
    )
    y_gain += tl.load(k_gain + partner, mask=(dims < DIM) & (is_key_gain == 1), other=0.0).to(
        tl.float32
    )

    scale = tl.rsqrt(tl.sum(x * x, axis=1) / DIM + eps)[:, None]
    is_rotated = dims < 2 * HALF
    angle_offs = token * HALF + tl.where(dims < HALF, dims, dims - HALF)
    c = tl.load(cos + angle_offs, mask=is_rotated, other=1.0)
    s = tl.load(sin + angle_offs, mask=is_rotated, other=0.0)
    s = tl.where(dims < HALF, -s, s)
    out = x * scale * x_gain * c + y * scale * y_gain * s

    if is_key:
        offs = (token * KV_HEADS + heads) * DIM + dims
        tl.store(k_out + offs, out.to(k_out.dtype.element_ty), mask=mask)
        if STORE:
            cache_offs = heads * DIM + dims
            keys = out.to(key_cache.dtype.element_ty)
            tl.store(key_cache + slot * key_stride + cache_offs, keys, mask=mask)
            tl.store(value_cache + slot * value_stride + cache_offs, v, mask=mask)
    else:
        offs = (token * HEADS + heads) * DIM + dims
        tl.store(q_out + offs, out.to(q_out.dtype.element_ty), mask=mask)


def prepare_queries_and_keys(
    qkv: Tensor,
    gains: tuple[Tensor, Tensor],
    tables: tuple[Tensor, Tensor],
    heads: tuple[int, int],
    eps: float,
    cache: LayerKVCache | None,
    prefetch_weight: Tensor | None = None,
    pdl: bool = False,
) -> tuple[Tensor, Tensor]:
    """Normalise and rotate the queries and keys of a projection; store keys and values.

    Computes in float32 and rounds once.

    Args:
        qkv: [tokens, (heads + 2 * kv_heads) * head_dim].
        gains: Gains of the query and key norms, [head_dim] each.
        tables: float32 cos and sin, [tokens, rotary_dim / 2] each.
        heads: Numbers of query and of key heads.
        eps: Epsilon of the norms.
        cache: Where to store keys and values, or None.
        prefetch_weight: Weight of the product after attention.
        pdl: Launch with programmatic dependent launch.

    Returns:
        Queries [tokens, heads * head_dim] and keys [tokens, kv_heads * head_dim].
    """
    tokens, dim = qkv.shape[0], gains[0].shape[0]
    assert qkv.stride(1) == 1
    assert all(table.is_contiguous() for table in tables)
    q, k = (torch.empty(tokens, n * dim, dtype=qkv.dtype, device=qkv.device) for n in heads)
    if tokens:
        block = HEADS_PER_PROGRAM
        programs = triton.cdiv(heads[0], block) + triton.cdiv(heads[1], block)
        prefetch_programs = 0 if prefetch_weight is None else triton.cdiv(PREFETCH_PROGRAMS, tokens)
        data, lines = (k, 0) if prefetch_weight is None else view_as_bytes(prefetch_weight)
        _prepare_kernel[(tokens, programs + prefetch_programs)](
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
            PREFETCH=prefetch_weight is not None,
            PDL=pdl,
            num_warps=4,
            launch_pdl=pdl,
        )
    return q, k
