"""Attention inside many short sequences of one length, with the rotation of pairs in front.

37 tokens make a sequence of the flow model, five one of the aggregator: a whole head of a
sequence fits the registers of one program. Plain form: `models/ming/dit.py`.
"""

from dataclasses import dataclass

import torch
import triton
import triton.language as tl
from torch import Tensor

from sglang_omni.kernels.pdl import wait_for_inputs


@dataclass(frozen=True)
class AttentionTiling:
    """How attention is shared out: heads of a sequence for one program, one after the other, its
    warps, and how many stages its loads are ahead."""

    heads: int = 1
    warps: int = 4
    stages: int = 2


ONE_HEAD = AttentionTiling()


@triton.jit
def _short_attention_kernel(  # type: ignore[no-untyped-def]
    qkv,
    cos,
    sin,
    out,
    x,
    shift,
    x_tail,
    scale,
    LENGTH: tl.constexpr,
    FIRST: tl.constexpr,
    ROWS: tl.constexpr,
    WIDTH: tl.constexpr,
    HALF: tl.constexpr,
    HEADS: tl.constexpr,
    TAIL: tl.constexpr,
    SHIFT: tl.constexpr,
    LENGTH_PAD: tl.constexpr,
    ROWS_PAD: tl.constexpr,
    HALF_PAD: tl.constexpr,
    PRECISION: tl.constexpr,
    PDL: tl.constexpr,
):
    """HEADS heads of one sequence: queries are its rows FIRST .. FIRST + ROWS - 1."""
    sequence = tl.program_id(0).to(tl.int64)
    dtype = qkv.dtype.element_ty
    size: tl.constexpr = 2 * HALF
    keys, dims = tl.arange(0, LENGTH_PAD), tl.arange(0, HALF_PAD)
    values, queries = tl.arange(0, 2 * HALF_PAD), FIRST + tl.arange(0, ROWS_PAD)
    key_in = (keys[:, None] < LENGTH) & (dims[None, :] < HALF)
    query_in = (queries[:, None] < FIRST + ROWS) & (dims[None, :] < HALF)
    value_in = (keys[:, None] < LENGTH) & (values[None, :] < size)
    out_in = (queries[:, None] < FIRST + ROWS) & (values[None, :] < size)
    out_rows = sequence * ROWS + tl.arange(0, ROWS_PAD)

    # The tables depend on nothing: they are read while the kernel ahead still runs.
    angle = keys[:, None] * HALF + dims[None, :]
    k_cos = tl.load(cos + angle, mask=key_in, other=0.0).to(tl.float32)
    k_sin = tl.load(sin + angle, mask=key_in, other=0.0).to(tl.float32)
    q_cos, q_sin = k_cos, k_sin
    if FIRST > 0 or ROWS < LENGTH:
        angle = queries[:, None] * HALF + dims[None, :]
        q_cos = tl.load(cos + angle, mask=query_in, other=0.0).to(tl.float32)
        q_sin = tl.load(sin + angle, mask=query_in, other=0.0).to(tl.float32)
    wait_for_inputs(PDL)

    for turn in range(HEADS):
        head = tl.program_id(1) * HEADS + turn
        base = qkv + sequence * LENGTH * 3 * WIDTH + head * size
        at = base + WIDTH + keys[:, None] * 3 * WIDTH + dims[None, :]
        k_even = tl.load(at, mask=key_in, other=0.0).to(tl.float32)
        k_odd = tl.load(at + HALF, mask=key_in, other=0.0).to(tl.float32)
        k_first = (k_even * k_cos - k_odd * k_sin).to(dtype)
        k_second = (k_odd * k_cos + k_even * k_sin).to(dtype)
        at = base + queries[:, None] * 3 * WIDTH + dims[None, :]
        q_even = tl.load(at, mask=query_in, other=0.0).to(tl.float32)
        q_odd = tl.load(at + HALF, mask=query_in, other=0.0).to(tl.float32)
        q_first = (q_even * q_cos - q_odd * q_sin).to(dtype)
        q_second = (q_odd * q_cos + q_even * q_sin).to(dtype)
        at = base + 2 * WIDTH + keys[:, None] * 3 * WIDTH + values[None, :]
        v = tl.load(at, mask=value_in, other=0.0)

        scores = tl.dot(q_first, tl.trans(k_first), input_precision=PRECISION)
        scores = tl.dot(q_second, tl.trans(k_second), scores, input_precision=PRECISION) * scale
        scores = tl.where(keys[None, :] < LENGTH, scores, float("-inf"))
        weights = tl.exp(scores - tl.max(scores, axis=1)[:, None])
        total = tl.sum(weights, axis=1)[:, None]
        mixed = tl.dot(weights.to(dtype), v, input_precision=PRECISION) / total

        out_at = out_rows[:, None] * WIDTH + head * size + values[None, :]
        tl.store(out + out_at, mixed.to(dtype), mask=out_in)
        if TAIL:
            x_rows = sequence * LENGTH + queries
            x_at = x_rows[:, None] * WIDTH + head * size + values[None, :]
            kept = tl.load(x + x_at, mask=out_in, other=0.0)
            if SHIFT:
                offset = tl.load(shift + head * size + values, mask=values < size, other=0.0)
                kept = (kept.to(tl.float32) + offset[None, :]).to(dtype)
            tl.store(x_tail + out_at, kept, mask=out_in)


def short_attention(
    qkv: Tensor,
    cos: Tensor,
    sin: Tensor,
    heads: int,
    rows: slice,
    x: Tensor | None = None,
    shift: Tensor | None = None,
    *,
    cut: AttentionTiling = ONE_HEAD,
    pdl: bool = False,
) -> tuple[Tensor, Tensor | None]:
    """Attend within each sequence of qkv [sequences, length, 3 * width], from its `rows` only.

    Inside a head of q and k the even dimensions come before the odd ones; cos and sin
    [length, head_dim / 2] are those of the pairs. Returns [sequences * rows, width] and, of the
    residual stream x [sequences, length, width] plus shift [width], the same rows (None without x).
    `cut.heads` must divide `heads`.
    """
    sequences, length, width = qkv.shape[0], qkv.shape[1], qkv.shape[2] // 3
    half = width // heads // 2
    first, last, _ = rows.indices(length)
    assert heads % cut.heads == 0
    assert qkv.is_contiguous() and cos.is_contiguous() and cos.shape == (length, half)
    out = qkv.new_empty(sequences * (last - first), width)
    tail = None if x is None else torch.empty_like(out)
    _short_attention_kernel[(sequences, heads // cut.heads)](
        qkv,
        cos,
        sin,
        out,
        out if x is None else x,
        qkv if shift is None else shift,
        out if tail is None else tail,
        (2 * half) ** -0.5,
        LENGTH=length,
        FIRST=first,
        ROWS=last - first,
        WIDTH=width,
        HALF=half,
        HEADS=cut.heads,
        TAIL=x is not None,
        SHIFT=shift is not None,
        LENGTH_PAD=max(16, triton.next_power_of_2(length)),
        ROWS_PAD=max(16, triton.next_power_of_2(last - first)),
        HALF_PAD=max(16, triton.next_power_of_2(half)),
        PRECISION="ieee" if qkv.dtype == torch.float32 else "tf32",
        PDL=pdl,
        num_warps=cut.warps,
        num_stages=cut.stages,
        launch_pdl=pdl,
    )
    return out, tail
