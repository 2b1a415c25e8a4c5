"""Batched streaming VAE decoder: one patch per call for any of a fixed number of slots.

The unit of work is fixed: decode one patch to its frames (16 in the released model), given the
latents before and after it. A call decodes the patch that each slot held back for its look-ahead;
slots that end decode their newest patch as well. So all tensors of a unit have fixed shapes, and
all state is in tensors with one row per slot. Tests compare it with `tests/testing/vae_stream.py`,
which decodes one signal in chunks of any length.
"""

import torch
import torch.nn.functional as F
from torch import Tensor

from sglang_omni.models.ming.speech.qwen2 import Qwen2Stack, build_causal_mask
from sglang_omni.models.ming.speech.vae import ISTFT, AudioVAE
from sglang_omni.protocol.errors import CheckpointError

# The squared-window envelope is zero at the first sample of a stream, which is cropped.
MIN_ENVELOPE = 1e-11


class VaeSlots:
    """Streaming decoders in fixed slots. The joined outputs of a slot equal the full decode.

    State per slot: the patch held back and the latent before it, the last 63 keys and values of
    every layer, and the overlap of the inverse STFT. The numbers of samples below are those of the
    released model, with four latents in a patch. The host counts the patches of each slot and
    chooses what to decode; it waits for the device once, when the samples are copied.
    """

    def __init__(self, vae: AudioVAE, slots: int, patch: int) -> None:
        """Make room for `slots` streams of patches of `patch` latents."""
        self._decoder, self._istft = vae.decoder, vae.decoder.head.istft
        weight = vae.decoder.fc1.weight
        self._frames = patch * vae.decoder.patch
        self._unit_samples = self._frames * self._istft.hop
        self._overlap = self._istft.size - self._istft.hop
        self._patches = torch.zeros(slots, dtype=torch.int64)
        self._latents = weight.new_zeros(slots, patch + 1, vae.config.decoder.latent_dim)
        self._cache = SlotCache(vae.decoder.decoder, slots)
        self._audio = weight.new_zeros(slots, self._overlap, dtype=torch.float32)
        self._envelopes = compute_unit_envelopes(self._istft, self._frames)

    def reset(self, slot: int) -> None:
        """Clear the state of a slot, so that another request can use it."""
        self._clear(torch.tensor([slot]))

    @torch.inference_mode()
    def decode(self, slots: Tensor, latents: Tensor, last: Tensor) -> list[Tensor]:
        """Add one patch for each of n distinct slots and return the new samples of each.

        Args:
            slots: int64 [n], on the host.
            latents: [n, patch, dim], on the device of the VAE.
            last: bool [n], on the host; a slot whose patch is its last returns all remaining
                samples (29547 after at least two other patches) and is reset.

        Returns:
            One float32 host tensor per slot: 0 samples for the first patch of a slot, 12789 for the
            second, 14112 for later ones.
        """
        num_patches = self._patches[slots]
        held_rows, ended_rows = num_patches.nonzero().flatten(), last.nonzero().flatten()
        pcm = [
            self._decode_held(
                slots[held_rows],
                num_patches[held_rows] - 1,
                self._select_rows(latents, held_rows)[:, :1],
            )
        ]
        self._hold(slots, latents, num_patches == 0)
        pcm.append(
            self._decode_held(
                slots[ended_rows],
                num_patches[ended_rows],
                self._select_rows(latents, ended_rows)[:, -1:],
            )
        )
        self._clear(slots[ended_rows])
        return self._split(
            torch.cat(pcm).cpu(), num_patches.tolist(), held_rows.tolist(), ended_rows.tolist()
        )

    def _decode_held(self, slots: Tensor, patches: Tensor, after: Tensor) -> Tensor:
        """Decode the held patch of each slot, which is patch number `patches` [m] of its stream.

        `after` [m, 1, dim] is the latent that follows it. Returns the samples whose overlap is
        complete, then those that would be complete if the stream ended here: [m, 14112 + 1323].
        """
        if len(slots) == 0:
            return self._audio.new_zeros(0, self._envelopes.shape[1])
        index, patches = self._to_device(slots), self._to_device(patches)
        latents = torch.cat((self._latents[index], after.to(self._latents.dtype)), dim=1)
        rows = self._decoder.embed_latents(latents)[:, self._decoder.patch : -self._decoder.patch]
        hidden = self._cache.forward(rows, index, patches * self._frames)
        audio = self._istft.overlap_add(self._decoder.head(hidden))
        audio[:, : self._overlap] += self._audio[index]
        self._audio[index] = audio[:, -self._overlap :]
        return audio[:, : self._envelopes.shape[1]] / self._envelopes[(patches > 0).long()]

    def _hold(self, slots: Tensor, latents: Tensor, first: Tensor) -> None:
        """Hold the patches `latents` [n, patch, dim]; a first patch is its own predecessor."""
        index, latents = self._to_device(slots), latents.to(self._latents.dtype)
        before = self._latents[index, -1:]
        before = torch.where(self._to_device(first)[:, None, None], latents[:, :1], before)
        self._latents[index] = torch.cat((before, latents), dim=1)
        self._patches[slots] += 1

    def _clear(self, slots: Tensor) -> None:
        with torch.inference_mode():
            index = self._to_device(slots)
            self._patches[slots] = 0
            self._latents[index] = 0
            self._audio[index] = 0
            self._cache.clear(index)

    def _split(
        self, pcm: Tensor, num_patches: list[int], held_rows: list[int], ended_rows: list[int]
    ) -> list[Tensor]:
        """Assign the decoded rows (those of `held_rows`, then of `ended_rows`) to the n slots."""
        full, crop = self._unit_samples, self._istft.crop
        spans = [(row, crop if num_patches[row] == 1 else 0, full) for row in held_rows]
        spans += [(row, crop if num_patches[row] == 0 else 0, full + crop) for row in ended_rows]
        out = [[pcm.new_zeros(0)] for _ in num_patches]
        for samples, (row, start, end) in zip(pcm, spans, strict=True):
            out[row].append(samples[start:end])
        return [torch.cat(parts) for parts in out]

    def _select_rows(self, tensor: Tensor, rows: Tensor) -> Tensor:
        return tensor[rows.to(tensor.device, non_blocking=True)]

    def _to_device(self, tensor: Tensor) -> Tensor:
        return tensor.to(self._latents.device, non_blocking=True)


def compute_unit_envelopes(istft: ISTFT, frames: int) -> Tensor:
    """Return squared-window sums of the first unit of a stream and of a later unit.

    A unit has `frames` frames. Shape [2, frames * hop + crop]: the samples that a unit completes if
    the stream ends with it.
    """
    overlap = istft.size - istft.hop
    first = istft.compute_envelope(frames)
    later = first.clone()
    later[:, :overlap] += first[:, -overlap:]
    envelopes = torch.cat((first, later)).clamp_min(MIN_ENVELOPE)
    return envelopes[:, : frames * istft.hop + istft.crop].contiguous()


class SlotCache:
    """Keys and values of the last `window - 1` positions of every layer, one row per slot."""

    def __init__(self, stack: Qwen2Stack, slots: int) -> None:
        config = stack.config
        if config.window is None:
            raise CheckpointError("streaming needs a sliding window; the VAE decoder has none")
        self.stack, self.window, self.past = stack, config.window, config.window - 1
        shape = (len(stack.layers), slots, config.num_key_value_heads, self.past, config.head_dim)
        weight = stack.norm.weight
        self.keys, self.values = weight.new_zeros(shape), weight.new_zeros(shape)

    def forward(self, x: Tensor, index: Tensor, start: Tensor) -> Tensor:
        """Run the stack on x [m, time, hidden], from position `start` [m] of each slot."""
        return self.stack(x, SlotWindowContext(self, x, index, start))

    def clear(self, index: Tensor) -> None:
        """Zero the rows `index` [m]; masked keys must not be NaN either."""
        self.keys[:, index] = 0
        self.values[:, index] = 0


class SlotWindowContext:
    """Attention of one pass over chosen slots: rotary positions, mask and cache rows."""

    def __init__(self, cache: SlotCache, x: Tensor, index: Tensor, start: Tensor) -> None:
        self._cache, self._index = cache, index
        offsets = torch.arange(-cache.past, x.shape[1], device=x.device)
        positions = start[:, None] + offsets
        queries = positions[:, cache.past :]
        self.cos, self.sin = cache.stack.compute_tables(queries, x.dtype)
        # Positions below zero were never written: the slot has fewer than `past` rows so far.
        written = (positions >= 0)[:, None, :]
        self._mask = (build_causal_mask(queries, positions, cache.window) & written)[:, None]

    def attend(self, layer: int, q: Tensor, k: Tensor, v: Tensor) -> Tensor:
        """Store k and v, then attend over each slot's window and the new positions."""
        k = self._extend(self._cache.keys[layer], k)
        v = self._extend(self._cache.values[layer], v)
        return F.scaled_dot_product_attention(q, k, v, attn_mask=self._mask, enable_gqa=True)

    def _extend(self, stored: Tensor, new: Tensor) -> Tensor:
        """Append the new rows to the stored rows, and store the newest `past` of them."""
        joined = torch.cat((stored[self._index], new), dim=2)
        stored[self._index] = joined[:, :, -self._cache.past :]
        return joined
