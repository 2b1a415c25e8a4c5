"""Decode attention: one new position per slot over the cache of the slot.

Applies the rotary embedding and stores the new key and value. Plain form: `DecodeContext` in
`sglang_omni/models/ming/speech/slots.py`. The length of every slot is read on the device, so one
launch serves contexts of any length.
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
    """Compute the query heads of one key head for one row."""
    row, kv_head = tl.program_id(0), tl.program_id(1)
    dtype = qkv.dtype.element_ty
    head_dim: tl.constexpr = 2 * HALF
    heads: tl.constexpr = KV_HEADS * GROUP
    wait_for_inputs(PDL)
    slot = tl.load(index + row)
    position = tl.load(lengths + slot)
    group, dims, value_dims = (
        tl.arange(0, GROUP_PAD),
        tl.arange(0, HALF_PAD),
        tl.arange(0, 2 * HALF_PAD),
    )
    dim_mask, value_mask = dims < HALF, value_dims < head_dim
    c = tl.load(cos + position * HALF + dims, mask=dim_mask, other=0.0).to(tl.float32)
    s = tl.load(sin + position * HALF + dims, mask=dim_mask, other=0.0).to(tl.float32)

    base = qkv + row.to(tl.int64) * (heads + 2 * KV_HEADS) * head_dim
    offs = base + (kv_head * GROUP + group[:, None]) * head_dim + dims[None, :]
    query_mask = (group[:, None] < GROUP) & dim_mask[None, :]
    first = tl.load(offs, mask=query_mask, other=0.0).to(tl.float32)
    second = tl.load(offs + HALF, mask=query_mask, other=0.0).to(tl.float32)
    q_first = (first * c[None, :] - second * s[None, :]).to(dtype)
    q_second = (second * c[None, :] + first * s[None, :]).to(dtype)

    offs = base + (heads + kv_head) * head_dim + dims
    first = tl.load(offs, mask=dim_mask, other=0.0).to(tl.float32)
    second = tl.load(offs + HALF, mask=dim_mask, other=0.0).to(tl.float32)
    k_first = (first * c - second * s).to(dtype)
    k_second = (second * c + first * s).to(dtype)
    v_new = tl.load(
        base + (heads + KV_HEADS + kv_head) * head_dim + value_dims, mask=value_mask, other=0.0
    )

    cache = (slot * KV_HEADS + kv_head) * CONTEXT * head_dim
    new_offs = cache + position * head_dim
    tl.store(keys + new_offs + dims, k_first, mask=dim_mask)
    tl.store(keys + new_offs + HALF + dims, k_second, mask=dim_mask)
    tl.store(values + new_offs + value_dims, v_new, mask=value_mask)

    # The new position is in registers, earlier positions are in the cache.
    scores_new = q_first.to(tl.float32) * k_first.to(tl.float32)[None, :]
    scores_new += q_second.to(tl.float32) * k_second.to(tl.float32)[None, :]
    max_score = tl.sum(scores_new, axis=1) * scale
    total = tl.full((GROUP_PAD,), 1.0, tl.float32)
    acc = tl.zeros((GROUP_PAD, 2 * HALF_PAD), tl.float32) + v_new.to(tl.float32)[None, :]
    for start in range(0, position, BLOCK):
        positions = start + tl.arange(0, BLOCK)
        position_mask = positions < position
        key_offs = cache + positions[:, None] * head_dim + dims[None, :]
        mask = position_mask[:, None] & dim_mask[None, :]
        old_first = tl.load(keys + key_offs, mask=mask, other=0.0)
        old_second = tl.load(keys + key_offs + HALF, mask=mask, other=0.0)
        scores = tl.dot(q_first, tl.trans(old_first), input_precision=PRECISION)
        scores = tl.dot(q_second, tl.trans(old_second), scores, input_precision=PRECISION) * scale
        scores = tl.where(position_mask[None, :], scores, float("-inf"))
        new_max = tl.maximum(max_score, tl.max(scores, axis=1))
        rescale = tl.exp(max_score - new_max)
        weights = tl.exp(scores - new_max[:, None])
        value_offs = cache + positions[:, None] * head_dim + value_dims[None, :]
        v = tl.load(
            values + value_offs, mask=position_mask[:, None] & value_mask[None, :], other=0.0
        )
        acc = tl.dot(weights.to(dtype), v, acc * rescale[:, None], input_precision=PRECISION)
        total = total * rescale + tl.sum(weights, axis=1)
        max_score = new_max
    offs = out + row.to(tl.int64) * heads * head_dim
    offs += (kv_head * GROUP + group[:, None]) * head_dim + value_dims[None, :]
    attended = (acc / total[:, None]).to(dtype)
    tl.store(offs, attended, mask=(group[:, None] < GROUP) & value_mask[None, :])


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
    """Store the key and value of each row at the next position of its slot, and attend up to it.

    Args:
        qkv: [n, (heads + 2 kv_heads) * head_dim].
        keys: Cached keys of one layer, [slots, kv_heads, context, head_dim].
        values: Cached values, as `keys`.
        index: Slots of the rows, int64 [n].
        lengths: Cache lengths, int64 [slots], each below `context`.
        cos: Rotary cosines [context, head_dim / 2].
        sin: Rotary sines, as `cos`.
        pdl: Launch with programmatic dependent launch.

    Returns:
        [n, heads * head_dim].
    """
    _, kv_heads, context, head_dim = keys.shape
    group = qkv.shape[1] // head_dim // kv_heads - 2
    assert qkv.is_contiguous()
    assert keys.is_contiguous()
    assert values.is_contiguous()
    assert cos.is_contiguous()
    assert cos.shape[1] == head_dim // 2
    out = qkv.new_empty(qkv.shape[0], kv_heads * group * head_dim)
    _decode_attention_kernel[(qkv.shape[0], kv_heads)](
        qkv,
        keys,
        values,
        index,
        lengths,
        cos,
        sin,
        out,
        head_dim**-0.5,
        CONTEXT=context,
        KV_HEADS=kv_heads,
        GROUP=group,
        HALF=head_dim // 2,
        GROUP_PAD=max(16, triton.next_power_of_2(group)),
        HALF_PAD=max(16, triton.next_power_of_2(head_dim // 2)),
        BLOCK=64,
        PRECISION="ieee" if qkv.dtype == torch.float32 else "tf32",
        PDL=pdl,
        num_warps=4,
        launch_pdl=pdl,
    )
    return out
