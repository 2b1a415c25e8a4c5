"""Rotary embedding and attention within many short sequences of the same length.

A sequence has 37 tokens in the flow model and five in the aggregator, so a whole head of a
sequence fits the registers of one program. Plain form: `sglang_omni/models/ming/speech/dit.py`.
"""

from dataclasses import dataclass

import torch
import triton
import triton.language as tl
from torch import Tensor

from sglang_omni.kernels.pdl import wait_for_inputs


@dataclass(frozen=True)
class AttentionTiling:
    """Tiling of an attention kernel.

    `heads` is the number of heads that one program computes one after the other; `warps` and
    `stages` are Triton's `num_warps` and `num_stages`.
    """

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
    """Compute HEADS heads of one sequence for the queries FIRST .. FIRST + ROWS - 1."""
    sequence = tl.program_id(0).to(tl.int64)
    dtype = qkv.dtype.element_ty
    size: tl.constexpr = 2 * HALF
    keys, dims = tl.arange(0, LENGTH_PAD), tl.arange(0, HALF_PAD)
    values, queries = tl.arange(0, 2 * HALF_PAD), FIRST + tl.arange(0, ROWS_PAD)
    key_mask = (keys[:, None] < LENGTH) & (dims[None, :] < HALF)
    query_mask = (queries[:, None] < FIRST + ROWS) & (dims[None, :] < HALF)
    value_mask = (keys[:, None] < LENGTH) & (values[None, :] < size)
    out_mask = (queries[:, None] < FIRST + ROWS) & (values[None, :] < size)
    out_rows = sequence * ROWS + tl.arange(0, ROWS_PAD)

    # The tables are constant: read them while the previous kernel still runs.
    angle_offs = keys[:, None] * HALF + dims[None, :]
    k_cos = tl.load(cos + angle_offs, mask=key_mask, other=0.0).to(tl.float32)
    k_sin = tl.load(sin + angle_offs, mask=key_mask, other=0.0).to(tl.float32)
    q_cos, q_sin = k_cos, k_sin
    if FIRST > 0 or ROWS < LENGTH:
        angle_offs = queries[:, None] * HALF + dims[None, :]
        q_cos = tl.load(cos + angle_offs, mask=query_mask, other=0.0).to(tl.float32)
        q_sin = tl.load(sin + angle_offs, mask=query_mask, other=0.0).to(tl.float32)
    wait_for_inputs(PDL)

    for step in range(HEADS):
        head = tl.program_id(1) * HEADS + step
        base = qkv + sequence * LENGTH * 3 * WIDTH + head * size
        offs = base + WIDTH + keys[:, None] * 3 * WIDTH + dims[None, :]
        k_even = tl.load(offs, mask=key_mask, other=0.0).to(tl.float32)
        k_odd = tl.load(offs + HALF, mask=key_mask, other=0.0).to(tl.float32)
        k_first = (k_even * k_cos - k_odd * k_sin).to(dtype)
        k_second = (k_odd * k_cos + k_even * k_sin).to(dtype)
        offs = base + queries[:, None] * 3 * WIDTH + dims[None, :]
        q_even = tl.load(offs, mask=query_mask, other=0.0).to(tl.float32)
        q_odd = tl.load(offs + HALF, mask=query_mask, other=0.0).to(tl.float32)
        q_first = (q_even * q_cos - q_odd * q_sin).to(dtype)
        q_second = (q_odd * q_cos + q_even * q_sin).to(dtype)
        offs = base + 2 * WIDTH + keys[:, None] * 3 * WIDTH + values[None, :]
        v = tl.load(offs, mask=value_mask, other=0.0)

        scores = tl.dot(q_first, tl.trans(k_first), input_precision=PRECISION)
        scores = tl.dot(q_second, tl.trans(k_second), scores, input_precision=PRECISION) * scale
        scores = tl.where(keys[None, :] < LENGTH, scores, float("-inf"))
        weights = tl.exp(scores - tl.max(scores, axis=1)[:, None])
        total = tl.sum(weights, axis=1)[:, None]
        attended = tl.dot(weights.to(dtype), v, input_precision=PRECISION) / total

        out_offs = out_rows[:, None] * WIDTH + head * size + values[None, :]
        tl.store(out + out_offs, attended.to(dtype), mask=out_mask)
        if TAIL:
            x_rows = sequence * LENGTH + queries
            x_offs = x_rows[:, None] * WIDTH + head * size + values[None, :]
            tail_rows = tl.load(x + x_offs, mask=out_mask, other=0.0)
            if SHIFT:
                offset = tl.load(shift + head * size + values, mask=values < size, other=0.0)
                tail_rows = (tail_rows.to(tl.float32) + offset[None, :]).to(dtype)
            tl.store(x_tail + out_offs, tail_rows, mask=out_mask)


def short_attention(
    qkv: Tensor,
    cos: Tensor,
    sin: Tensor,
    heads: int,
    rows: slice,
    x: Tensor | None = None,
    shift: Tensor | None = None,
    *,
    tiling: AttentionTiling = ONE_HEAD,
    pdl: bool = False,
) -> tuple[Tensor, Tensor | None]:
    """Attend within each sequence of `qkv`, from the queries `rows`.

    Within each head of q and k, the even dimensions come before the odd ones.

    Args:
        qkv: Contiguous [sequences, length, 3 * width].
        cos: Rotary cosines of the pairs, [length, head_dim / 2].
        sin: Rotary sines, as `cos`.
        heads: Number of heads.
        rows: The queries of each sequence.
        x: Residual stream [sequences, length, width], or None.
        shift: Bias [width] to add to the returned rows of x.
        tiling: `tiling.heads` must divide `heads`.
        pdl: Launch with programmatic dependent launch.

    Returns:
        Attention output [sequences * rows, width], and the same rows of x + shift (None without x).
    """
    sequences, length, width = qkv.shape[0], qkv.shape[1], qkv.shape[2] // 3
    half = width // heads // 2
    first, last, _ = rows.indices(length)
    assert heads % tiling.heads == 0
    assert qkv.is_contiguous()
    assert cos.is_contiguous()
    assert cos.shape == (length, half)
    out = qkv.new_empty(sequences * (last - first), width)
    x_rows = None if x is None else torch.empty_like(out)
    _short_attention_kernel[(sequences, heads // tiling.heads)](
        qkv,
        cos,
        sin,
        out,
        out if x is None else x,
        qkv if shift is None else shift,
        out if x_rows is None else x_rows,
        (2 * half) ** -0.5,
        LENGTH=length,
        FIRST=first,
        ROWS=last - first,
        WIDTH=width,
        HALF=half,
        HEADS=tiling.heads,
        TAIL=x is not None,
        SHIFT=shift is not None,
        LENGTH_PAD=max(16, triton.next_power_of_2(length)),
        ROWS_PAD=max(16, triton.next_power_of_2(last - first)),
        HALF_PAD=max(16, triton.next_power_of_2(half)),
        PRECISION="ieee" if qkv.dtype == torch.float32 else "tf32",
        PDL=pdl,
        num_warps=tiling.warps,
        num_stages=tiling.stages,
        launch_pdl=pdl,
    )
    return out, x_rows
