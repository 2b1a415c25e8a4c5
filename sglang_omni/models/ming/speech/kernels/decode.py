"""Attention of one new position per slot over the slot's own cache, rotation and store included.

Plain form: `Decode` in `sglang_omni/models/ming/speech/slots.py`. The length of every slot is read
on the device, so one launch serves contexts of any length.
"""

import torch
import triton
import triton.language as tl
from torch import Tensor

from sglang_omni.kernels.pdl import wait_for_inputs


@triton.jit
def _decode_attention_kernel(  # type: ignore[no-untyped-def]
    qkv,
    keys,
    values,
    index,
    lengths,
    cos,
    sin,
    out,
    scale,
    CONTEXT: tl.constexpr,
    KV_HEADS: tl.constexpr,
    GROUP: tl.constexpr,
    HALF: tl.constexpr,
    GROUP_PAD: tl.constexpr,
    HALF_PAD: tl.constexpr,
    BLOCK: tl.constexpr,
    PRECISION: tl.constexpr,
    PDL: tl.constexpr,
):
    """One row's query heads of one key head."""
    row, kv_head = tl.program_id(0), tl.program_id(1)
    dtype = qkv.dtype.element_ty
    size: tl.constexpr = 2 * HALF
    heads: tl.constexpr = KV_HEADS * GROUP
    wait_for_inputs(PDL)
    slot = tl.load(index + row)
    position = tl.load(lengths + slot)
    group, dims, wide = tl.arange(0, GROUP_PAD), tl.arange(0, HALF_PAD), tl.arange(0, 2 * HALF_PAD)
    dim_in, wide_in = dims < HALF, wide < size
    c = tl.load(cos + position * HALF + dims, mask=dim_in, other=0.0).to(tl.float32)
    s = tl.load(sin + position * HALF + dims, mask=dim_in, other=0.0).to(tl.float32)

    base = qkv + row.to(tl.int64) * (heads + 2 * KV_HEADS) * size
    at = base + (kv_head * GROUP + group[:, None]) * size + dims[None, :]
    query_in = (group[:, None] < GROUP) & dim_in[None, :]
    first = tl.load(at, mask=query_in, other=0.0).to(tl.float32)
    second = tl.load(at + HALF, mask=query_in, other=0.0).to(tl.float32)
    q_first = (first * c[None, :] - second * s[None, :]).to(dtype)
    q_second = (second * c[None, :] + first * s[None, :]).to(dtype)

    at = base + (heads + kv_head) * size + dims
    first = tl.load(at, mask=dim_in, other=0.0).to(tl.float32)
    second = tl.load(at + HALF, mask=dim_in, other=0.0).to(tl.float32)
    k_first = (first * c - second * s).to(dtype)
    k_second = (second * c + first * s).to(dtype)
    v_new = tl.load(base + (heads + KV_HEADS + kv_head) * size + wide, mask=wide_in, other=0.0)

    cache = (slot * KV_HEADS + kv_head) * CONTEXT * size
    new_at = cache + position * size
    tl.store(keys + new_at + dims, k_first, mask=dim_in)
    tl.store(keys + new_at + HALF + dims, k_second, mask=dim_in)
    tl.store(values + new_at + wide, v_new, mask=wide_in)

    # The new position comes from registers, the ones before it from the cache.
    new = q_first.to(tl.float32) * k_first.to(tl.float32)[None, :]
    new += q_second.to(tl.float32) * k_second.to(tl.float32)[None, :]
    highest = tl.sum(new, axis=1) * scale
    total = tl.full((GROUP_PAD,), 1.0, tl.float32)
    acc = tl.zeros((GROUP_PAD, 2 * HALF_PAD), tl.float32) + v_new.to(tl.float32)[None, :]
    for start in range(0, position, BLOCK):
        places = start + tl.arange(0, BLOCK)
        place_in = places < position
        key_at = cache + places[:, None] * size + dims[None, :]
        inside = place_in[:, None] & dim_in[None, :]
        old_first = tl.load(keys + key_at, mask=inside, other=0.0)
        old_second = tl.load(keys + key_at + HALF, mask=inside, other=0.0)
        scores = tl.dot(q_first, tl.trans(old_first), input_precision=PRECISION)
        scores = tl.dot(q_second, tl.trans(old_second), scores, input_precision=PRECISION) * scale
        scores = tl.where(place_in[None, :], scores, float("-inf"))
        higher = tl.maximum(highest, tl.max(scores, axis=1))
        rescale = tl.exp(highest - higher)
        weights = tl.exp(scores - higher[:, None])
        value_at = cache + places[:, None] * size + wide[None, :]
        v = tl.load(values + value_at, mask=place_in[:, None] & wide_in[None, :], other=0.0)
        acc = tl.dot(weights.to(dtype), v, acc * rescale[:, None], input_precision=PRECISION)
        total = total * rescale + tl.sum(weights, axis=1)
        highest = higher
    at = out + row.to(tl.int64) * heads * size
    at += (kv_head * GROUP + group[:, None]) * size + wide[None, :]
    mixed = (acc / total[:, None]).to(dtype)
    tl.store(at, mixed, mask=(group[:, None] < GROUP) & wide_in[None, :])


def decode_attention(
    qkv: Tensor,
    keys: Tensor,
    values: Tensor,
    index: Tensor,
    lengths: Tensor,
    cos: Tensor,
    sin: Tensor,
    *,
    pdl: bool = False,
) -> Tensor:
    """Store each row's key and value at its slot's next position and attend up to it.

    qkv [n, (heads + 2 kv_heads) * head_dim]; keys and values [slots, kv_heads, context, head_dim]
    of one layer; index int64 [n]; lengths int64 [slots], below `context`; cos and sin
    [context, head_dim / 2]. Returns [n, heads * head_dim].
    """
    _, kv_heads, context, size = keys.shape
    group = qkv.shape[1] // size // kv_heads - 2
    assert qkv.is_contiguous() and keys.is_contiguous() and values.is_contiguous()
    assert cos.is_contiguous() and cos.shape[1] == size // 2
    out = qkv.new_empty(qkv.shape[0], kv_heads * group * size)
    _decode_attention_kernel[(qkv.shape[0], kv_heads)](
        qkv,
        keys,
        values,
        index,
        lengths,
        cos,
        sin,
        out,
        size**-0.5,
        CONTEXT=context,
        KV_HEADS=kv_heads,
        GROUP=group,
        HALF=size // 2,
        GROUP_PAD=max(16, triton.next_power_of_2(group)),
        HALF_PAD=max(16, triton.next_power_of_2(size // 2)),
        BLOCK=64,
        PRECISION="ieee" if qkv.dtype == torch.float32 else "tf32",
        PDL=pdl,
        num_warps=4,
        launch_pdl=pdl,
    )
    return out
