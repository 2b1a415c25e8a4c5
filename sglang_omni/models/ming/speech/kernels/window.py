"""Sliding-window attention of one unit of frames per slot; keys and values are in a ring.

Plain form: `SlotWindowContext` in `sglang_omni/models/ming/speech/vae_slots.py`. The ring holds
the window and one unit, so storing a unit never overwrites a key that the unit still attends to.
"""

import torch
import triton
import triton.language as tl
from torch import Tensor

from sglang_omni.kernels.pdl import wait_for_inputs

WARPS = 4
"""Warps per program. One warp is faster at 128 streams (15.6 instead of 17.8 us on an H200) and
slower at one stream."""


@triton.jit
def _window_attention_kernel(  # type: ignore[no-untyped-def]
    qkv,
    keys,
    values,
    index,
    starts,
    cos,
    sin,
    out,
    scale,
    FRAMES: tl.constexpr,
    WINDOW: tl.constexpr,
    RING: tl.constexpr,
    KV_HEADS: tl.constexpr,
    GROUP: tl.constexpr,
    HALF: tl.constexpr,
    FRAMES_PAD: tl.constexpr,
    WINDOW_PAD: tl.constexpr,
    HALF_PAD: tl.constexpr,
    PRECISION: tl.constexpr,
    PDL: tl.constexpr,
):
    """Compute one query head of one unit. The first head of a group stores its key head."""
    row, head = tl.program_id(0), tl.program_id(1)
    dtype = qkv.dtype.element_ty
    head_dim: tl.constexpr = 2 * HALF
    heads: tl.constexpr = KV_HEADS * GROUP
    width: tl.constexpr = (heads + 2 * KV_HEADS) * head_dim
    kv_head = head // GROUP
    wait_for_inputs(PDL)
    slot = tl.load(index + row)
    start = tl.load(starts + row)
    frames, dims, value_dims = (
        tl.arange(0, FRAMES_PAD),
        tl.arange(0, HALF_PAD),
        tl.arange(0, 2 * HALF_PAD),
    )
    frame_mask, value_mask = frames < FRAMES, value_dims < head_dim
    mask = frame_mask[:, None] & (dims[None, :] < HALF)
    value_frame_mask = frame_mask[:, None] & value_mask[None, :]
    angle_offs = (start + frames[:, None]) * HALF + dims[None, :]
    c = tl.load(cos + angle_offs, mask=mask, other=0.0).to(tl.float32)
    s = tl.load(sin + angle_offs, mask=mask, other=0.0).to(tl.float32)

    base = qkv + (row.to(tl.int64) * FRAMES + frames[:, None]) * width
    offs = base + head * head_dim + dims[None, :]
    first = tl.load(offs, mask=mask, other=0.0).to(tl.float32)
    second = tl.load(offs + HALF, mask=mask, other=0.0).to(tl.float32)
    q_first, q_second = (first * c - second * s).to(dtype), (second * c + first * s).to(dtype)
    offs = base + (heads + kv_head) * head_dim + dims[None, :]
    first = tl.load(offs, mask=mask, other=0.0).to(tl.float32)
    second = tl.load(offs + HALF, mask=mask, other=0.0).to(tl.float32)
    k_first, k_second = (first * c - second * s).to(dtype), (second * c + first * s).to(dtype)
    offs = base + (heads + KV_HEADS + kv_head) * head_dim + value_dims[None, :]
    v = tl.load(offs, mask=value_frame_mask, other=0.0)

    ring = (slot * KV_HEADS + kv_head) * RING * head_dim
    if head % GROUP == 0:
        new_offs = ring + ((start + frames[:, None]) % RING) * head_dim
        tl.store(keys + new_offs + dims[None, :], k_first, mask=mask)
        tl.store(keys + new_offs + HALF + dims[None, :], k_second, mask=mask)
        tl.store(values + new_offs + value_dims[None, :], v, mask=value_frame_mask)

    old_positions = start - (WINDOW - 1) + tl.arange(0, WINDOW_PAD)
    old_mask = (old_positions >= 0) & (old_positions < start)
    old_offs = ring + ((old_positions + RING) % RING)[:, None] * head_dim
    old_key_mask = old_mask[:, None] & (dims[None, :] < HALF)
    old_first = tl.load(keys + old_offs + dims[None, :], mask=old_key_mask, other=0.0)
    old_second = tl.load(keys + old_offs + HALF + dims[None, :], mask=old_key_mask, other=0.0)
    old_value_mask = old_mask[:, None] & value_mask[None, :]
    old_v = tl.load(values + old_offs + value_dims[None, :], mask=old_value_mask, other=0.0)

    query = start + frames[:, None]
    past_scores = tl.dot(q_first, tl.trans(old_first), input_precision=PRECISION)
    past_scores = (
        tl.dot(q_second, tl.trans(old_second), past_scores, input_precision=PRECISION) * scale
    )
    past_scores = tl.where(
        old_mask[None, :] & (query - old_positions[None, :] < WINDOW), past_scores, float("-inf")
    )
    new_scores = tl.dot(q_first, tl.trans(k_first), input_precision=PRECISION)
    new_scores = tl.dot(q_second, tl.trans(k_second), new_scores, input_precision=PRECISION) * scale
    distance = frames[:, None] - frames[None, :]
    visible = (distance >= 0) & (distance < WINDOW) & frame_mask[None, :]
    new_scores = tl.where(visible, new_scores, float("-inf"))

    max_score = tl.maximum(tl.max(past_scores, axis=1), tl.max(new_scores, axis=1))[:, None]
    past_scores, new_scores = tl.exp(past_scores - max_score), tl.exp(new_scores - max_score)
    total = (tl.sum(past_scores, axis=1) + tl.sum(new_scores, axis=1))[:, None]
    attended = tl.dot(past_scores.to(dtype), old_v, input_precision=PRECISION)
    attended = tl.dot(new_scores.to(dtype), v, attended, input_precision=PRECISION) / total
    offs = out + (row.to(tl.int64) * FRAMES + frames[:, None]) * heads * head_dim + head * head_dim
    tl.store(offs + value_dims[None, :], attended.to(dtype), mask=value_frame_mask)


def window_attention(
    qkv: Tensor,
    keys: Tensor,
    values: Tensor,
    index: Tensor,
    starts: Tensor,
    cos: Tensor,
    sin: Tensor,
    window: int,
    *,
    warps: int = WARPS,
    pdl: bool = False,
) -> Tensor:
    """Attend from one unit of frames per row, and store the keys and values of the unit.

    Args:
        qkv: [n, frames, (heads + 2 kv_heads) * head_dim].
        keys: Cached keys of one layer, [slots, kv_heads, ring, head_dim]; ring is at least
            window - 1 + frames.
        values: Cached values, as `keys`.
        index: Slots, int64 [n].
        starts: Positions of the first frames, int64 [n].
        cos: Rotary cosines [positions, head_dim / 2].
        sin: Rotary sines, as `cos`.
        window: Number of positions that a query sees, its own included.
        warps: Warps of a block.
        pdl: Launch with programmatic dependent launch.

    Returns:
        [n * frames, heads * head_dim].
    """
    n, frames, width = qkv.shape
    _, kv_heads, ring, head_dim = keys.shape
    group = width // head_dim // kv_heads - 2
    assert ring >= window - 1 + frames
    assert qkv.is_contiguous()
    assert keys.is_contiguous()
    out = qkv.new_empty(n * frames, kv_heads * group * head_dim)
    _window_attention_kernel[(n, kv_heads * group)](
        qkv,
        keys,
        values,
        index,
        starts,
        cos,
        sin,
        out,
        head_dim**-0.5,
        FRAMES=frames,
        WINDOW=window,
        RING=ring,
        KV_HEADS=kv_heads,
        GROUP=group,
        HALF=head_dim // 2,
        FRAMES_PAD=max(16, triton.next_power_of_2(frames)),
        WINDOW_PAD=max(16, triton.next_power_of_2(window - 1)),
        HALF_PAD=max(16, triton.next_power_of_2(head_dim // 2)),
        PRECISION="ieee" if qkv.dtype == torch.float32 else "tf32",
        PDL=pdl,
        num_warps=warps,
        launch_pdl=pdl,
    )
    return out
