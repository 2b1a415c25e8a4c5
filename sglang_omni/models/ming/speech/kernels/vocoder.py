"""Kernels around the layers of the vocoder: latent upsampling, spectra, and overlap-add in slots.

Plain forms: `upsample` and `ISTFT` in `sglang_omni/models/ming/speech/vae.py`, `VaeSlots` in
`sglang_omni/models/ming/speech/vae_slots.py`.
"""

import torch
import triton
import triton.language as tl
from torch import Tensor

BLOCK = 1024


@triton.jit
def _upsample_kernel(  # type: ignore[no-untyped-def]
    ring,
    index,
    patches,
    final,
    out,
    RING: tl.constexpr,
    PATCH: tl.constexpr,
    LATENT: tl.constexpr,
    FACTOR: tl.constexpr,
    PAST: tl.constexpr,
    FRAMES_PAD: tl.constexpr,
    LATENT_PAD: tl.constexpr,
):
    row = tl.program_id(0).to(tl.int64)
    slot, patch = tl.load(index + row), tl.load(patches + row)
    is_final = tl.load(final + row) != 0
    frames, dims = tl.arange(0, FRAMES_PAD), tl.arange(0, LATENT_PAD)
    mask = (frames[:, None] < PATCH * FACTOR) & (dims[None, :] < LATENT)
    # Position of a frame among the latents; those of the patch are numbered from one.
    position = (frames.to(tl.float32) + 0.5) / FACTOR + 0.5
    first = position.to(tl.int32)
    fraction = (position - first.to(tl.float32))[:, None]
    # The first latent of a stream replaces the one before it, the last the one after it.
    first_at = tl.where((first == 0) & (patch == 0), 1, first) - 1
    second_at = tl.where((first == PATCH) & is_final, PATCH - 1, first)
    base = slot * RING * PATCH
    origin = (patch + PAST) * PATCH
    a = base + (origin + first_at) % (RING * PATCH)
    b = base + (origin + second_at) % (RING * PATCH)
    low = tl.load(ring + a[:, None] * LATENT + dims[None, :], mask=mask, other=0.0)
    high = tl.load(ring + b[:, None] * LATENT + dims[None, :], mask=mask, other=0.0)
    mixed = low.to(tl.float32) * (1.0 - fraction) + high.to(tl.float32) * fraction
    out_ptrs = out + (row * PATCH * FACTOR + frames[:, None]) * LATENT + dims[None, :]
    tl.store(out_ptrs, mixed.to(out.dtype.element_ty), mask=mask)


def upsample_patch(
    ring: Tensor, index: Tensor, patches: Tensor, final: Tensor, factor: int, past: int
) -> Tensor:
    """Upsample one patch per row by linear interpolation: [n, patch * factor, latent].

    Args:
        ring: [slots, entries, patch, latent]; patch number p is entry (p + past) % entries.
        index: Slots, int64 [n].
        patches: Patch numbers, int64 [n].
        final: int64 [n], 1 where no patch follows.
        factor: Number of rows for each latent.
        past: Number of patches of the history.
    """
    _, entries, patch, latent = ring.shape
    out = ring.new_empty(len(index), patch * factor, latent)
    _upsample_kernel[(len(index),)](
        ring,
        index,
        patches,
        final,
        out,
        RING=entries,
        PATCH=patch,
        LATENT=latent,
        FACTOR=factor,
        PAST=past,
        FRAMES_PAD=triton.next_power_of_2(patch * factor),
        LATENT_PAD=triton.next_power_of_2(latent),
        num_warps=4,
    )
    return out


@triton.jit
def _spectrum_kernel(  # type: ignore[no-untyped-def]
    x,
    out,
    stride,
    max_magnitude,
    BINS: tl.constexpr,
    BLOCK: tl.constexpr,
):
    row = tl.program_id(0).to(tl.int64)
    bins = tl.program_id(1) * BLOCK + tl.arange(0, BLOCK)
    mask = bins < BINS
    magnitude = tl.load(x + row * stride + bins, mask=mask, other=0.0).to(tl.float32)
    phase = tl.load(x + row * stride + BINS + bins, mask=mask, other=0.0).to(tl.float32)
    magnitude = tl.minimum(tl.exp(magnitude), max_magnitude)
    out_ptrs = out + (row * BINS + bins) * 2
    tl.store(out_ptrs, magnitude * tl.cos(phase), mask=mask)
    tl.store(out_ptrs + 1, magnitude * tl.sin(phase), mask=mask)


def compute_spectrum(x: Tensor, bins: int, max_magnitude: float) -> Tensor:
    """Return complex64 spectra [rows, bins] of x [rows, >= 2 * bins]: log magnitudes, then phases.

    Magnitudes are clamped to `max_magnitude`.
    """
    rows = x.shape[0]
    out = torch.empty(rows, bins, 2, device=x.device, dtype=torch.float32)
    assert x.stride(1) == 1
    _spectrum_kernel[(rows, triton.cdiv(bins, BLOCK))](
        x,
        out,
        x.stride(0),
        max_magnitude,
        BINS=bins,
        BLOCK=BLOCK,
        num_warps=4,
    )
    return torch.view_as_complex(out)


@triton.jit
def _overlap_kernel(  # type: ignore[no-untyped-def]
    frames,
    window,
    envelopes,
    carry,
    index,
    patches,
    out,
    FRAMES: tl.constexpr,
    HOP: tl.constexpr,
    PARTS: tl.constexpr,
    OUT: tl.constexpr,
    BLOCK: tl.constexpr,
):
    """Compute some samples of one unit. The carry is double-buffered."""
    row = tl.program_id(0).to(tl.int64)
    samples = tl.program_id(1) * BLOCK + tl.arange(0, BLOCK)
    size: tl.constexpr = HOP * PARTS
    overlap: tl.constexpr = size - HOP
    unit: tl.constexpr = FRAMES * HOP
    slot, patch = tl.load(index + row), tl.load(patches + row)
    total = tl.zeros((BLOCK,), tl.float32)
    for part in tl.static_range(PARTS):
        frame = samples // HOP - part
        offset = samples % HOP + part * HOP
        mask = (frame >= 0) & (frame < FRAMES)
        offs = (row * FRAMES + frame) * size + offset
        value = tl.load(frames + offs, mask=mask, other=0.0)
        total += value * tl.load(window + offset, mask=mask, other=0.0)
    slot_offs = slot * 2 * overlap
    carry_in = carry + slot_offs + (patch % 2) * overlap + samples
    total += tl.load(carry_in, mask=(samples < overlap) & (patch > 0), other=0.0)
    carry_out = carry + slot_offs + ((patch + 1) % 2) * overlap + samples - unit
    tl.store(carry_out, total, mask=(samples >= unit) & (samples < unit + overlap))
    offs = tl.where(patch > 0, OUT, 0) + samples
    envelope = tl.load(envelopes + offs, mask=samples < OUT, other=1.0)
    tl.store(out + row * OUT + samples, total / envelope, mask=samples < OUT)


def overlap_add(
    frames: Tensor, window: Tensor, envelopes: Tensor, carry: Tensor, index: Tensor, patches: Tensor
) -> Tensor:
    """Window and overlap-add one unit of inverse-STFT frames per slot.

    Args:
        frames: float32 [n, count, size].
        window: [size].
        envelopes: [2, samples], of the first unit of a stream and of later units.
        carry: [slots, 2, size - hop]. A unit reads half `patch % 2` (except for patch 0) and writes
            the other half.
        index: Slots, int64 [n].
        patches: Patch numbers, int64 [n].

    Returns:
        [n, samples]: the complete samples, then those that are complete if the stream ends here.
    """
    n, count, size = frames.shape
    hop = size - carry.shape[2]
    samples = envelopes.shape[1]
    assert frames.is_contiguous()
    assert envelopes.is_contiguous()
    assert carry.is_contiguous()
    out = torch.empty(n, samples, device=frames.device, dtype=torch.float32)
    grid = (n, triton.cdiv((count - 1) * hop + size, BLOCK))
    _overlap_kernel[grid](
        frames,
        window,
        envelopes,
        carry,
        index,
        patches,
        out,
        FRAMES=count,
        HOP=hop,
        PARTS=size // hop,
        OUT=samples,
        BLOCK=BLOCK,
        num_warps=4,
    )
    return out
