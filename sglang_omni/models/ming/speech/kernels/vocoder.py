"""Around the vocoder's layers: latents stretched to frames, spectra, and overlap-add in slots.

Plain form: `upsample` and `ISTFT` in `models/ming/vae.py`, `VaeSlots` in `talker/stream.py`.
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
    ends = tl.load(final + row) != 0
    frames, dims = tl.arange(0, FRAMES_PAD), tl.arange(0, LATENT_PAD)
    inside = (frames[:, None] < PATCH * FACTOR) & (dims[None, :] < LATENT)
    # A frame's place among the latents, those of the patch being numbered from one.
    place = (frames.to(tl.float32) + 0.5) / FACTOR + 0.5
    first = place.to(tl.int32)
    share = (place - first.to(tl.float32))[:, None]
    # The first latent of a stream stands in for the one before it, the last for the one after.
    first_at = tl.where((first == 0) & (patch == 0), 1, first) - 1
    second_at = tl.where((first == PATCH) & ends, PATCH - 1, first)
    base = slot * RING * PATCH
    origin = (patch + PAST) * PATCH
    a = base + (origin + first_at) % (RING * PATCH)
    b = base + (origin + second_at) % (RING * PATCH)
    low = tl.load(ring + a[:, None] * LATENT + dims[None, :], mask=inside, other=0.0)
    high = tl.load(ring + b[:, None] * LATENT + dims[None, :], mask=inside, other=0.0)
    mixed = low.to(tl.float32) * (1.0 - share) + high.to(tl.float32) * share
    at = out + (row * PATCH * FACTOR + frames[:, None]) * LATENT + dims[None, :]
    tl.store(at, mixed.to(out.dtype.element_ty), mask=inside)


def upsample_patch(
    ring: Tensor, index: Tensor, patches: Tensor, final: Tensor, factor: int, past: int
) -> Tensor:
    """Stretch one patch of latents per row by linear interpolation: [n, patch * factor, latent].

    ring [slots, entries, patch, latent], in which patch number p is entry (p + past) % entries;
    index, patches and final int64 [n], `final` being 1 where no patch follows.
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
    highest,
    BINS: tl.constexpr,
    BLOCK: tl.constexpr,
):
    row = tl.program_id(0).to(tl.int64)
    bins = tl.program_id(1) * BLOCK + tl.arange(0, BLOCK)
    inside = bins < BINS
    magnitude = tl.load(x + row * stride + bins, mask=inside, other=0.0).to(tl.float32)
    phase = tl.load(x + row * stride + BINS + bins, mask=inside, other=0.0).to(tl.float32)
    magnitude = tl.minimum(tl.exp(magnitude), highest)
    at = out + (row * BINS + bins) * 2
    tl.store(at, magnitude * tl.cos(phase), mask=inside)
    tl.store(at + 1, magnitude * tl.sin(phase), mask=inside)


def compute_spectrum(x: Tensor, bins: int, highest: float) -> Tensor:
    """Complex64 spectra [rows, bins] of x [rows, >= 2 * bins]: log magnitudes, then phases."""
    rows = x.shape[0]
    out = torch.empty(rows, bins, 2, device=x.device, dtype=torch.float32)
    assert x.stride(1) == 1
    _spectrum_kernel[(rows, triton.cdiv(bins, BLOCK))](
        x,
        out,
        x.stride(0),
        highest,
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
    """Some samples of one unit. The carry has two halves, read and written in turn."""
    row = tl.program_id(0).to(tl.int64)
    samples = tl.program_id(1) * BLOCK + tl.arange(0, BLOCK)
    size: tl.constexpr = HOP * PARTS
    overlap: tl.constexpr = size - HOP
    unit: tl.constexpr = FRAMES * HOP
    slot, patch = tl.load(index + row), tl.load(patches + row)
    total = tl.zeros((BLOCK,), tl.float32)
    for part in tl.static_range(PARTS):
        frame = samples // HOP - part
        place = samples % HOP + part * HOP
        inside = (frame >= 0) & (frame < FRAMES)
        at = (row * FRAMES + frame) * size + place
        value = tl.load(frames + at, mask=inside, other=0.0)
        total += value * tl.load(window + place, mask=inside, other=0.0)
    half = slot * 2 * overlap
    carried = carry + half + (patch % 2) * overlap + samples
    total += tl.load(carried, mask=(samples < overlap) & (patch > 0), other=0.0)
    kept = carry + half + ((patch + 1) % 2) * overlap + samples - unit
    tl.store(kept, total, mask=(samples >= unit) & (samples < unit + overlap))
    at = tl.where(patch > 0, OUT, 0) + samples
    envelope = tl.load(envelopes + at, mask=samples < OUT, other=1.0)
    tl.store(out + row * OUT + samples, total / envelope, mask=samples < OUT)


def overlap_add(
    frames: Tensor, window: Tensor, envelopes: Tensor, carry: Tensor, index: Tensor, patches: Tensor
) -> Tensor:
    """Window, overlap and add one unit of inverse-STFT frames per slot.

    frames [n, count, size] float32, window [size]; envelopes [2, samples], of a stream's first unit
    and of a later one; carry [slots, 2, size - hop], whose half number patch % 2 a unit takes up
    (not that of patch 0) and whose other half it leaves; index, patches int64 [n]. Returns the
    samples that are complete and those that would be if the stream ended: [n, samples].
    """
    n, count, size = frames.shape
    hop = size - carry.shape[2]
    samples = envelopes.shape[1]
    assert frames.is_contiguous() and envelopes.is_contiguous() and carry.is_contiguous()
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
