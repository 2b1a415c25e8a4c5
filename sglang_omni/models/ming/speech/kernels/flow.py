"""Kernels around the blocks of the flow model: input tokens and guided velocity.

Plain form: `sglang_omni/models/ming/speech/cfm.py`. The latents of a slot are in a ring of
patches [slots, ring, patch, latent]. Patch p of a stream is entry (p + past) % ring, so its
history, the `past` patches before it, starts at entry p % ring. The sampled state is float32.
"""

import math

import torch
import triton
import triton.language as tl
from torch import Tensor

from sglang_omni.kernels.pdl import wait_for_inputs

BLOCK = 128


@triton.jit
def _embed_history_kernel(  # type: ignore[no-untyped-def]
    ring,
    index,
    patches,
    weight,
    bias,
    out,
    RING: tl.constexpr,
    PATCH: tl.constexpr,
    LATENT: tl.constexpr,
    ROWS: tl.constexpr,
    WIDTH: tl.constexpr,
    ROWS_PAD: tl.constexpr,
    BLOCK: tl.constexpr,
    PRECISION: tl.constexpr,
):
    row = tl.program_id(0).to(tl.int64)
    cols, rows = tl.program_id(1) * BLOCK + tl.arange(0, BLOCK), tl.arange(0, ROWS_PAD)
    dims = tl.arange(0, LATENT)
    slot = tl.load(index + row)
    patch = tl.load(patches + slot)
    entry = (patch + rows // PATCH) % RING
    offs = ((slot * RING + entry) * PATCH + rows % PATCH)[:, None] * LATENT + dims[None, :]
    latents = tl.load(ring + offs, mask=rows[:, None] < ROWS, other=0.0)
    offs = cols[:, None] * LATENT + dims[None, :]
    weights = tl.load(weight + offs, mask=cols[:, None] < WIDTH, other=0.0)
    embedded = tl.dot(latents, tl.trans(weights), input_precision=PRECISION)
    embedded += tl.load(bias + cols, mask=cols < WIDTH, other=0.0).to(tl.float32)[None, :]
    offs = (row * ROWS + rows[:, None]) * WIDTH + cols[None, :]
    mask = (rows[:, None] < ROWS) & (cols[None, :] < WIDTH)
    tl.store(out + offs, embedded.to(out.dtype.element_ty), mask=mask)


def embed_history(
    ring: Tensor, index: Tensor, patches: Tensor, rows: int, weight: Tensor, bias: Tensor
) -> Tensor:
    """Embed the history of each slot: [n, rows, width].

    Args:
        ring: [slots, entries, patch, latent].
        index: Slots, int64 [n].
        patches: Number of the next patch, int64 [slots].
        rows: Number of latents of the history.
        weight: [width, latent].
        bias: [width].
    """
    n, width, (_, entries, patch, latent) = len(index), weight.shape[0], ring.shape
    assert ring.is_contiguous()
    assert weight.is_contiguous()
    out = ring.new_empty(n, rows, width)
    _embed_history_kernel[(n, triton.cdiv(width, BLOCK))](
        ring,
        index,
        patches,
        weight,
        bias,
        out,
        RING=entries,
        PATCH=patch,
        LATENT=latent,
        ROWS=rows,
        WIDTH=width,
        ROWS_PAD=max(16, triton.next_power_of_2(rows)),
        BLOCK=BLOCK,
        PRECISION=_select_precision(ring),
        num_warps=4,
    )
    return out


@triton.jit
def _assemble_kernel(  # type: ignore[no-untyped-def]
    head,
    time,
    null,
    history,
    state,
    weight,
    bias,
    out,
    N,
    HISTORY: tl.constexpr,
    PATCH: tl.constexpr,
    LATENT: tl.constexpr,
    WIDTH: tl.constexpr,
    PAIR: tl.constexpr,
    PER_ROW_HEAD: tl.constexpr,
    HISTORY_PAD: tl.constexpr,
    PATCH_PAD: tl.constexpr,
    BLOCK: tl.constexpr,
    PRECISION: tl.constexpr,
    PDL: tl.constexpr,
):
    """Write some columns of one sequence, or of a conditioned sequence and its null sequence."""
    row = tl.program_id(0).to(tl.int64)
    cols, dims = tl.program_id(1) * BLOCK + tl.arange(0, BLOCK), tl.arange(0, LATENT)
    col_mask = cols < WIDTH
    dtype = out.dtype.element_ty
    length: tl.constexpr = 1 + HISTORY + PATCH
    cond_out, null_out = out + row * length * WIDTH, out + (N + row) * length * WIDTH

    # Read constants while the previous kernel still runs.
    offs = cols[:, None] * LATENT + dims[None, :]
    weights = tl.load(weight + offs, mask=col_mask[:, None], other=0.0)
    bias_row = tl.load(bias + cols, mask=col_mask, other=0.0).to(tl.float32)
    if PAIR:
        time_row = tl.load(time + cols, mask=col_mask, other=0.0).to(tl.float32)
        null_row = tl.load(null + cols, mask=col_mask, other=0.0).to(tl.float32)
    wait_for_inputs(PDL)

    head_row = tl.load(head + (row * WIDTH if PER_ROW_HEAD else 0) + cols, mask=col_mask, other=0.0)
    if PAIR:
        tl.store(null_out + cols, (time_row + null_row).to(dtype), mask=col_mask)
        head_row = (time_row + head_row.to(tl.float32)).to(dtype)
    tl.store(cond_out + cols, head_row, mask=col_mask)

    if HISTORY > 0:
        rows = tl.arange(0, HISTORY_PAD)
        offs = rows[:, None] * WIDTH + cols[None, :]
        mask = (rows[:, None] < HISTORY) & col_mask[None, :]
        past = tl.load(history + row * HISTORY * WIDTH + offs, mask=mask, other=0.0)
        tl.store(cond_out + WIDTH + offs, past, mask=mask)
        if PAIR:
            tl.store(null_out + WIDTH + offs, past, mask=mask)

    rows = tl.arange(0, PATCH_PAD)
    offs = (row * PATCH + rows[:, None]) * LATENT + dims[None, :]
    y = tl.load(state + offs, mask=rows[:, None] < PATCH, other=0.0).to(dtype)
    embedded = tl.dot(y, tl.trans(weights), input_precision=PRECISION) + bias_row[None, :]
    offs = (1 + HISTORY + rows[:, None]) * WIDTH + cols[None, :]
    mask = (rows[:, None] < PATCH) & col_mask[None, :]
    tl.store(cond_out + offs, embedded.to(dtype), mask=mask)
    if PAIR:
        tl.store(null_out + offs, embedded.to(dtype), mask=mask)


def assemble_guidance_pair(
    time: Tensor,
    condition: Tensor,
    null: Tensor,
    history: Tensor,
    state: Tensor,
    weight: Tensor,
    bias: Tensor,
    *,
    pdl: bool = False,
) -> Tensor:
    """Return the tokens of one flow step: conditioned sequences, then their null sequences.

    A sequence is one head token, the history and the embedded state. The head token is time plus
    condition, or time plus null.

    Args:
        time: Embedding of the flow time, [width].
        condition: [n, width].
        null: The condition of the null sequences, [width].
        history: [n, past, width].
        state: float32 [n, patch, latent].
        weight: Embedding of the state, [width, latent].
        bias: Bias of the embedding, [width].
        pdl: Launch with programmatic dependent launch. The kernel then reads `time`, `null`,
            `weight` and `bias` before the previous kernel has ended.

    Returns:
        [2 n, 1 + past + patch, width].
    """
    n, past, width = history.shape
    out = history.new_empty(2 * n, 1 + past + state.shape[1], width)
    _assemble(
        condition, time, null, history, state, weight, bias, out,
        pair=True, past=past, pdl=pdl,
    )  # fmt: skip
    return out


def assemble_patch(cls: Tensor, state: Tensor, weight: Tensor, bias: Tensor) -> Tensor:
    """Return the tokens of the aggregator: cls [width], then the embedded state.

    `state` is float32 [n, patch, latent]; the result is [n, 1 + patch, width].
    """
    out = cls.new_empty(state.shape[0], 1 + state.shape[1], weight.shape[0])
    _assemble(cls, cls, cls, cls, state, weight, bias, out, pair=False, past=0, pdl=False)
    return out


def _assemble(
    head: Tensor,
    time: Tensor,
    null: Tensor,
    history: Tensor,
    state: Tensor,
    weight: Tensor,
    bias: Tensor,
    out: Tensor,
    *,
    pair: bool,
    past: int,
    pdl: bool,
) -> None:
    n, patch, latent = state.shape
    width = weight.shape[0]
    assert state.is_contiguous()
    assert history.is_contiguous()
    assert weight.is_contiguous()
    _assemble_kernel[(n, triton.cdiv(width, BLOCK))](
        head,
        time,
        null,
        history,
        state,
        weight,
        bias,
        out,
        n,
        HISTORY=past,
        PATCH=patch,
        LATENT=latent,
        WIDTH=width,
        PAIR=pair,
        PER_ROW_HEAD=pair,
        HISTORY_PAD=triton.next_power_of_2(max(past, 1)),
        PATCH_PAD=max(16, triton.next_power_of_2(patch)),
        BLOCK=BLOCK,
        PRECISION=_select_precision(weight),
        PDL=pdl,
        num_warps=4,
        launch_pdl=pdl,
    )


@triton.jit
def _guide_kernel(  # type: ignore[no-untyped-def]
    velocity,
    state,
    index,
    cfgs,
    noise_scales,
    noise,
    dt,
    root_dt,
    STRIDE,
    TOTAL,
    SIZE: tl.constexpr,
    BLOCK: tl.constexpr,
    PDL: tl.constexpr,
):
    offs = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    mask = offs < TOTAL
    row = offs // SIZE
    wait_for_inputs(PDL)
    slot = tl.load(index + row, mask=mask, other=0)
    strength = tl.load(cfgs + slot, mask=mask, other=0.0)
    scale = tl.load(noise_scales + slot, mask=mask, other=0.0)
    v = tl.load(velocity + offs, mask=mask, other=0.0).to(tl.float32)
    v_null = tl.load(velocity + TOTAL + offs, mask=mask, other=0.0).to(tl.float32)
    y = tl.load(state + offs, mask=mask, other=0.0)
    # The noise of slots with a scale of zero was never written.
    step_noise = tl.load(noise + row * STRIDE + offs % SIZE, mask=mask & (scale > 0), other=0.0)
    guided = y + (v + (v - v_null) * strength) * dt
    tl.store(state + offs, guided + scale * root_dt * step_noise, mask=mask)


def apply_guidance(
    velocity: Tensor,
    state: Tensor,
    index: Tensor,
    cfgs: Tensor,
    noise_scales: Tensor,
    noise: Tensor,
    *,
    dt: float,
    pdl: bool = False,
) -> None:
    """Advance the state in place by one step of guided velocity and noise.

    Args:
        velocity: [2 n * patch, latent], conditioned rows, then null rows.
        state: Contiguous float32 [n, patch, latent].
        index: Slots, int64 [n].
        cfgs: Strengths of the guidance, float32 [slots].
        noise_scales: float32 [slots]; a scale of zero adds no noise.
        noise: float32 [n, patch, latent]; its first dimension may be strided.
        dt: Length of the step.
        pdl: Launch with programmatic dependent launch.
    """
    total, size = state.numel(), state[0].numel()
    assert velocity.is_contiguous()
    assert velocity.numel() == 2 * total
    assert state.is_contiguous()
    _guide_kernel[(triton.cdiv(total, BLOCK),)](
        velocity,
        state,
        index,
        cfgs,
        noise_scales,
        noise,
        dt,
        math.sqrt(dt),
        noise.stride(0),
        total,
        SIZE=size,
        BLOCK=BLOCK,
        PDL=pdl,
        num_warps=4,
        launch_pdl=pdl,
    )


@triton.jit
def _store_patch_kernel(  # type: ignore[no-untyped-def]
    state,
    embeds,
    index,
    ring,
    next_embed,
    lengths,
    patches,
    SPARE,
    PAST: tl.constexpr,
    RING: tl.constexpr,
    SIZE: tl.constexpr,
    WIDTH: tl.constexpr,
    SIZE_PAD: tl.constexpr,
    WIDTH_PAD: tl.constexpr,
):
    row = tl.program_id(0).to(tl.int64)
    slot = tl.load(index + row)
    if slot != SPARE:
        patch = tl.load(patches + slot)
        length = tl.load(lengths + slot)
        ks = tl.arange(0, SIZE_PAD)
        y = tl.load(state + row * SIZE + ks, mask=ks < SIZE, other=0.0)
        offs = (slot * RING + (patch + PAST) % RING) * SIZE + ks
        tl.store(ring + offs, y.to(ring.dtype.element_ty), mask=ks < SIZE)
        ks = tl.arange(0, WIDTH_PAD)
        embed = tl.load(embeds + row * WIDTH + ks, mask=ks < WIDTH, other=0.0)
        tl.store(next_embed + slot * WIDTH + ks, embed, mask=ks < WIDTH)
        tl.store(patches + slot, patch + 1)
        tl.store(lengths + slot, length + 1)


def store_patch(
    state: Tensor,
    embeds: Tensor,
    index: Tensor,
    ring: Tensor,
    next_embed: Tensor,
    lengths: Tensor,
    patches: Tensor,
    past: int,
) -> None:
    """Store a finished patch per slot: state [n, patch, latent] and embeds [n, width].

    The last slot is the spare slot, which pads batches; it never advances.
    """
    size, width = state[0].numel(), embeds.shape[1]
    assert state.is_contiguous()
    assert embeds.is_contiguous()
    _store_patch_kernel[(len(index),)](
        state,
        embeds,
        index,
        ring,
        next_embed,
        lengths,
        patches,
        len(lengths) - 1,
        PAST=past,
        RING=ring.shape[1],
        SIZE=size,
        WIDTH=width,
        SIZE_PAD=triton.next_power_of_2(size),
        WIDTH_PAD=triton.next_power_of_2(width),
        num_warps=4,
    )


def _select_precision(like: Tensor) -> str:
    return "ieee" if like.dtype == torch.float32 else "tf32"
