"""The three attentions against the plain modules."""

from types import SimpleNamespace
from typing import Any

import pytest
import torch
from torch import Tensor

from sglang_omni.models.ming.speech import dit
from sglang_omni.models.ming.speech.fast.packed import _even_first_order
from sglang_omni.models.ming.speech.kernels.attention import AttentionTiling, short_attention
from sglang_omni.models.ming.speech.kernels.decode import decode_attention
from sglang_omni.models.ming.speech.kernels.window import window_attention
from sglang_omni.models.ming.speech.qwen2 import (
    AttentionContext,
    compute_inverse_frequencies,
    compute_rotary_tables,
)
from sglang_omni.models.ming.speech.slots import DecodeContext
from sglang_omni.models.ming.speech.vae_slots import SlotCache, SlotWindowContext
from tests.engines.speech.fast.conftest import Draw
from tests.testing.golden import assert_close

KV_HEADS, HEADS, SIZE = 2, 6, 32


@pytest.mark.parametrize(
    ("length", "rows"), [(37, slice(None)), (37, slice(-4, None)), (5, slice(0, 1))]
)
@pytest.mark.parametrize("size", [16, 64])
@pytest.mark.parametrize("together", [1, 2])
def test_short_sequences(
    draw: Draw,
    device: torch.device,
    dtype: torch.dtype,
    tolerance: float,
    length: int,
    rows: slice,
    size: int,
    together: int,
) -> None:
    heads, width = 4, 4 * size
    attention = dit.DiTAttention(width, heads).to(device, dtype)
    attention.to_out[0] = torch.nn.Identity()
    rotary = dit.RotaryEmbedding(size).to(device, dtype)(length)
    x = draw(3, length, width)
    with torch.no_grad():
        expected = attention(x, rotary, rows)
        order = _even_first_order(width, heads, device)
        q, k = attention.to_q(x)[..., order], attention.to_k(x)[..., order]
        qkv = torch.cat((q, k, attention.to_v(x)), dim=-1)
    cos, sin = (table[:, ::2].contiguous() for table in rotary)
    out, tail = short_attention(qkv, cos, sin, heads, rows, x, tiling=AttentionTiling(together))
    assert tail is not None
    assert_close(out.float(), expected.flatten(0, 1).float(), tolerance)
    assert torch.equal(tail, x[:, rows].flatten(0, 1))


def stack_of(dtype: torch.dtype, device: torch.device, window: int | None = None) -> Any:
    """What `DecodeContext` and `SlotWindowContext` read of a stack."""
    frequencies = compute_inverse_frequencies(SIZE, 10_000.0).to(device)
    config = SimpleNamespace(window=window, num_key_value_heads=KV_HEADS, head_dim=SIZE)
    norm = SimpleNamespace(weight=torch.ones(1, dtype=dtype, device=device))
    return SimpleNamespace(
        compute_tables=lambda positions, like: compute_rotary_tables(positions, frequencies, like),
        config=config,
        norm=norm,
        layers=[None],
    )


def tables_of(stack: Any, count: int, dtype: torch.dtype, device: torch.device) -> list[Tensor]:
    both = stack.compute_tables(torch.arange(count, device=device)[None], dtype)
    return [table[0, 0, :, : SIZE // 2].contiguous() for table in both]


def plain(context: AttentionContext, qkv: Tensor) -> Tensor:
    """q, k and v rotated as the plain layer does it, through `attend` of layer 0."""
    n, time = qkv.shape[:2]
    q, k, v = qkv.view(n, time, -1, SIZE).transpose(1, 2).split((HEADS, KV_HEADS, KV_HEADS), dim=1)
    q = q * context.cos + _rotate(q) * context.sin
    k = k * context.cos + _rotate(k) * context.sin
    return context.attend(0, q, k, v).transpose(1, 2).flatten(2)


def _rotate(x: Tensor) -> Tensor:
    first, second = x.chunk(2, dim=-1)
    return torch.cat((-second, first), dim=-1)


def test_one_position_of_each_slot(
    draw: Draw, device: torch.device, dtype: torch.dtype, tolerance: float
) -> None:
    context, slots = 160, 5
    keys, values = draw(slots, KV_HEADS, context, SIZE), draw(slots, KV_HEADS, context, SIZE)
    lengths = torch.tensor([0, 159, 63, 64, 7], device=device)
    index = torch.tensor([3, 0, 1, 4], device=device)
    stack = stack_of(dtype, device)
    state: Any = SimpleNamespace(
        lengths=lengths,
        keys=keys.clone()[None],
        values=values.clone()[None],
        next_embed=keys,
        _talker=SimpleNamespace(model=stack),
    )
    qkv = draw(4, (HEADS + 2 * KV_HEADS) * SIZE)
    expected = plain(DecodeContext(state, index, context), qkv[:, None])[:, 0]
    cos, sin = tables_of(stack, context, dtype, device)
    out = decode_attention(qkv, keys, values, index, lengths, cos, sin)
    assert_close(out.float(), expected.float(), tolerance)
    assert_close(keys.float(), state.keys[0].float(), tolerance)
    assert_close(values.float(), state.values[0].float(), tolerance)


def test_units_over_a_sliding_window_in_a_ring(
    draw: Draw, device: torch.device, dtype: torch.dtype, tolerance: float
) -> None:
    """Nine units of 16 frames wrap the ring of 40 + 16 twice; a slot starts anew in between."""
    window, frames, slots = 40, 16, 4
    stack = stack_of(dtype, device, window)
    cache = SlotCache(stack, slots)
    ring = window + frames
    keys = draw(slots, KV_HEADS, ring, SIZE) * float("nan")
    values = keys.clone()
    cos, sin = tables_of(stack, 9 * frames, dtype, device)
    ages = {0: 0, 2: 0, 3: 0}
    for turn in range(9):
        if turn == 5:
            ages[2] = 0
            cache.clear(torch.tensor([2], device=device))
        chosen = [slot for slot in ages if (slot + turn) % 3]
        index = torch.tensor(chosen, device=device)
        starts = torch.tensor([ages[slot] * frames for slot in chosen], device=device)
        qkv = draw(len(chosen), frames, (HEADS + 2 * KV_HEADS) * SIZE)
        expected = plain(SlotWindowContext(cache, qkv, index, starts), qkv).flatten(0, 1)
        out = window_attention(qkv, keys, values, index, starts, cos, sin, window)
        assert_close(out.float(), expected.float(), tolerance, f"turn {turn}")
        for slot in chosen:
            ages[slot] += 1
