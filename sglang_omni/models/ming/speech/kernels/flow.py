"""What happens around the blocks of the flow model: tokens in, guided velocity out.

Plain form: `models/ming/cfm.py`. Latents of a slot lie in a ring of patches, `[slots, ring, patch,
latent]`; patch number p of a stream is entry (p + past) % ring, so that its history, the `past`
patches before it, begins at entry p % ring. The sampled state stays in float32.
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
    at = ((slot * RING + entry) * PATCH + rows % PATCH)[:, None] * LATENT + dims[None, :]
    latents = tl.load(ring + at, mask=rows[:, None] < ROWS, other=0.0)
    at = cols[:, None] * LATENT + dims[None, :]
    w = tl.load(weight + at, mask=cols[:, None] < WIDTH, other=0.0)
    embedded = tl.dot(latents, tl.trans(w), input_precision=PRECISION)
    embedded += tl.load(bias + cols, mask=cols < WIDTH, other=0.0).to(tl.float32)[None, :]
    at = (row * ROWS + rows[:, None]) * WIDTH + cols[None, :]
    inside = (rows[:, None] < ROWS) & (cols[None, :] < WIDTH)
    tl.store(out + at, embedded.to(out.dtype.element_ty), mask=inside)


def embed_history(
    ring: Tensor, index: Tensor, patches: Tensor, rows: int, weight: Tensor, bias: Tensor
) -> Tensor:
    """Embed the history of each slot: [n, rows, width].

    ring [slots, entries, patch, latent], index int64 [n], patches int64 [slots], the number of the
    patch to come; weight [width, latent].
    """
    n, width, (_, entries, patch, latent) = len(index), weight.shape[0], ring.shape
    assert ring.is_contiguous() and weight.is_contiguous()
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
    """Some columns of one sequence, or of a conditioned sequence and its null twin."""
    row = tl.program_id(0).to(tl.int64)
    cols, dims = tl.program_id(1) * BLOCK + tl.arange(0, BLOCK), tl.arange(0, LATENT)
    col_in = cols < WIDTH
    dtype = out.dtype.element_ty
    length: tl.constexpr = 1 + HISTORY + PATCH
    first, twin = out + row * length * WIDTH, out + (N + row) * length * WIDTH

    # Constants are read while the kernel ahead still runs.
    at = cols[:, None] * LATENT + dims[None, :]
    w = tl.load(weight + at, mask=col_in[:, None], other=0.0)
    offset = tl.load(bias + cols, mask=col_in, other=0.0).to(tl.float32)
    if PAIR:
        t = tl.load(time + cols, mask=col_in, other=0.0).to(tl.float32)
        z = tl.load(null + cols, mask=col_in, other=0.0).to(tl.float32)
    wait_for_inputs(PDL)

    h = tl.load(head + (row * WIDTH if PER_ROW_HEAD else 0) + cols, mask=col_in, other=0.0)
    if PAIR:
        tl.store(twin + cols, (t + z).to(dtype), mask=col_in)
        h = (t + h.to(tl.float32)).to(dtype)
    tl.store(first + cols, h, mask=col_in)

    if HISTORY > 0:
        rows = tl.arange(0, HISTORY_PAD)
        at = rows[:, None] * WIDTH + cols[None, :]
        inside = (rows[:, None] < HISTORY) & col_in[None, :]
        past = tl.load(history + row * HISTORY * WIDTH + at, mask=inside, other=0.0)
        tl.store(first + WIDTH + at, past, mask=inside)
        if PAIR:
            tl.store(twin + WIDTH + at, past, mask=inside)

    rows = tl.arange(0, PATCH_PAD)
    at = (row * PATCH + rows[:, None]) * LATENT + dims[None, :]
    y = tl.load(state + at, mask=rows[:, None] < PATCH, other=0.0).to(dtype)
    embedded = tl.dot(y, tl.trans(w), input_precision=PRECISION) + offset[None, :]
    at = (1 + HISTORY + rows[:, None]) * WIDTH + cols[None, :]
    inside = (rows[:, None] < PATCH) & col_in[None, :]
    tl.store(first + at, embedded.to(dtype), mask=inside)
    if PAIR:
        tl.store(twin + at, embedded.to(dtype), mask=inside)


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
    """Tokens of one flow step, conditioned sequences first, then their null twins.

    A sequence is one head token, time [width] plus condition [n, width] or plus null [width]; then
    history [n, past, width]; then the embedded state [n, patch, latent] float32. Returns
    [2 n, 1 + past + patch, width]. Where `pdl`, `time`, `null`, weight and bias are read before
    the kernel ahead has ended.
    """
    n, past, width = history.shape
    out = history.new_empty(2 * n, 1 + past + state.shape[1], width)
    _assemble(
        condition, time, null, history, state, weight, bias, out,
        pair=True, past=past, pdl=pdl,
    )  # fmt: skip
    return out


def assemble_patch(cls: Tensor, state: Tensor, weight: Tensor, bias: Tensor) -> Tensor:
    """Tokens of the aggregator: cls [width], then the embedded state [n, patch, latent] float32.

    Returns [n, 1 + patch, width].
    """
    out = cls.new_empty(state.shape[0], 1 + state.shape[1], weight.shape[0])
    _assemble(
        cls, cls, cls, cls, state, weight, bias, out, pair=False, past=0, pdl=False
    )  # fmt: skip
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
    assert state.is_contiguous() and history.is_contiguous() and weight.is_contiguous()
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
    at = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    inside = at < TOTAL
    row = at // SIZE
    wait_for_inputs(PDL)
    slot = tl.load(index + row, mask=inside, other=0)
    cfg = tl.load(cfgs + slot, mask=inside, other=0.0)
    scale = tl.load(noise_scales + slot, mask=inside, other=0.0)
    v = tl.load(velocity + at, mask=inside, other=0.0).to(tl.float32)
    v_null = tl.load(velocity + TOTAL + at, mask=inside, other=0.0).to(tl.float32)
    y = tl.load(state + at, mask=inside, other=0.0)
    # Noise that nobody wants was never written.
    drawn = tl.load(noise + row * STRIDE + at % SIZE, mask=inside & (scale > 0), other=0.0)
    moved = y + (v + (v - v_null) * cfg) * dt
    tl.store(state + at, moved + scale * root_dt * drawn, mask=inside)


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
    """Advance state [n, patch, latent] float32 in place by one step of guided velocity, and by
    noise where a slot wants some.

    velocity [2 n * patch, latent] holds the conditioned rows and then those of the null twins.
    `cfgs` and `noise_scales` are float32 [slots], read at `index` [n]; noise [n, patch, latent]
    float32 may have its rows apart.
    """
    total, size = state.numel(), state[0].numel()
    assert velocity.is_contiguous() and velocity.numel() == 2 * total and state.is_contiguous()
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
        at = (slot * RING + (patch + PAST) % RING) * SIZE + ks
        tl.store(ring + at, y.to(ring.dtype.element_ty), mask=ks < SIZE)
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
    """Note a finished patch of each slot: state [n, patch, latent] and embeds [n, width].

    The last slot is the spare one that fills a batch up; it never advances.
    """
    size, width = state[0].numel(), embeds.shape[1]
    assert state.is_contiguous() and embeds.is_contiguous()
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
