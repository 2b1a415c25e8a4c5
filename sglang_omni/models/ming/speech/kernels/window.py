"""Attention of one unit of frames per slot over a sliding window that lies in a ring.

Plain form: `SlotWindow` in `sglang_omni/models/ming/speech/vae_slots.py`. The ring holds the window
and one unit, so that storing a unit never overwrites a key that the same unit still sees.
"""

import torch
import triton
import triton.language as tl
from torch import Tensor

from sglang_omni.kernels.pdl import wait_for_inputs

WARPS = 4
"""Of a program. One is faster at 128 streams (15.6 us for 17.8 on an H200), slower at one."""


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
    """One query head of one slot's unit. The first head of a group stores its key head."""
    row, head = tl.program_id(0), tl.program_id(1)
    dtype = qkv.dtype.element_ty
    size: tl.constexpr = 2 * HALF
    heads: tl.constexpr = KV_HEADS * GROUP
    width: tl.constexpr = (heads + 2 * KV_HEADS) * size
    kv_head = head // GROUP
    wait_for_inputs(PDL)
    slot = tl.load(index + row)
    start = tl.load(starts + row)
    frames, dims, wide = (
        tl.arange(0, FRAMES_PAD),
        tl.arange(0, HALF_PAD),
        tl.arange(0, 2 * HALF_PAD),
    )
    frame_in, wide_in = frames < FRAMES, wide < size
    inside = frame_in[:, None] & (dims[None, :] < HALF)
    wide_inside = frame_in[:, None] & wide_in[None, :]
    angle = (start + frames[:, None]) * HALF + dims[None, :]
    c = tl.load(cos + angle, mask=inside, other=0.0).to(tl.float32)
    s = tl.load(sin + angle, mask=inside, other=0.0).to(tl.float32)

    base = qkv + (row.to(tl.int64) * FRAMES + frames[:, None]) * width
    at = base + head * size + dims[None, :]
    first = tl.load(at, mask=inside, other=0.0).to(tl.float32)
    second = tl.load(at + HALF, mask=inside, other=0.0).to(tl.float32)
    q_first, q_second = (first * c - second * s).to(dtype), (second * c + first * s).to(dtype)
    at = base + (heads + kv_head) * size + dims[None, :]
    first = tl.load(at, mask=inside, other=0.0).to(tl.float32)
    second = tl.load(at + HALF, mask=inside, other=0.0).to(tl.float32)
    k_first, k_second = (first * c - second * s).to(dtype), (second * c + first * s).to(dtype)
    at = base + (heads + KV_HEADS + kv_head) * size + wide[None, :]
    v = tl.load(at, mask=wide_inside, other=0.0)

    ring = (slot * KV_HEADS + kv_head) * RING * size
    if head % GROUP == 0:
        new = ring + ((start + frames[:, None]) % RING) * size
        tl.store(keys + new + dims[None, :], k_first, mask=inside)
        tl.store(keys + new + HALF + dims[None, :], k_second, mask=inside)
        tl.store(values + new + wide[None, :], v, mask=wide_inside)

    before = start - (WINDOW - 1) + tl.arange(0, WINDOW_PAD)
    old_in = (before >= 0) & (before < start)
    old = ring + ((before + RING) % RING)[:, None] * size
    old_inside = old_in[:, None] & (dims[None, :] < HALF)
    old_first = tl.load(keys + old + dims[None, :], mask=old_inside, other=0.0)
    old_second = tl.load(keys + old + HALF + dims[None, :], mask=old_inside, other=0.0)
    old_wide = old_in[:, None] & wide_in[None, :]
    old_v = tl.load(values + old + wide[None, :], mask=old_wide, other=0.0)

    query = start + frames[:, None]
    past = tl.dot(q_first, tl.trans(old_first), input_precision=PRECISION)
    past = tl.dot(q_second, tl.trans(old_second), past, input_precision=PRECISION) * scale
    past = tl.where(old_in[None, :] & (query - before[None, :] < WINDOW), past, float("-inf"))
    now = tl.dot(q_first, tl.trans(k_first), input_precision=PRECISION)
    now = tl.dot(q_second, tl.trans(k_second), now, input_precision=PRECISION) * scale
    distance = frames[:, None] - frames[None, :]
    visible = (distance >= 0) & (distance < WINDOW) & frame_in[None, :]
    now = tl.where(visible, now, float("-inf"))

    highest = tl.maximum(tl.max(past, axis=1), tl.max(now, axis=1))[:, None]
    past, now = tl.exp(past - highest), tl.exp(now - highest)
    total = (tl.sum(past, axis=1) + tl.sum(now, axis=1))[:, None]
    mixed = tl.dot(past.to(dtype), old_v, input_precision=PRECISION)
    mixed = tl.dot(now.to(dtype), v, mixed, input_precision=PRECISION) / total
    at = out + (row.to(tl.int64) * FRAMES + frames[:, None]) * heads * size + head * size
    tl.store(at + wide[None, :], mixed.to(dtype), mask=wide_inside)


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
    """Attend from one unit of frames per row, and store the unit's keys and values.

    qkv [n, frames, (heads + 2 kv_heads) * head_dim]; keys and values
    [slots, kv_heads, ring, head_dim] of one layer, ring >= window - 1 + frames; index and starts
    int64 [n], the slots and the positions of the units' first frames; cos and sin
    [positions, head_dim / 2]. Returns [n * frames, heads * head_dim].
    """
    n, frames, width = qkv.shape
    _, kv_heads, ring, size = keys.shape
    group = width // size // kv_heads - 2
    assert ring >= window - 1 + frames and qkv.is_contiguous() and keys.is_contiguous()
    out = qkv.new_empty(n * frames, kv_heads * group * size)
    _window_attention_kernel[(n, kv_heads * group)](
        qkv,
        keys,
        values,
        index,
        starts,
        cos,
        sin,
        out,
        size**-0.5,
        FRAMES=frames,
        WINDOW=window,
        RING=ring,
        KV_HEADS=kv_heads,
        GROUP=group,
        HALF=size // 2,
        FRAMES_PAD=max(16, triton.next_power_of_2(frames)),
        WINDOW_PAD=max(16, triton.next_power_of_2(window - 1)),
        HALF_PAD=max(16, triton.next_power_of_2(size // 2)),
        PRECISION="ieee" if qkv.dtype == torch.float32 else "tf32",
        PDL=pdl,
        num_warps=warps,
        launch_pdl=pdl,
    )
    return out
