"""Streaming VAE decoder on the device: one unit (one patch) per row.

The same arithmetic as `sglang_omni/models/ming/speech/vae_slots.py`. A unit needs the last latent
of the patch before it and the first of the patch after it; all three patches are in the ring of
the slot. Nothing is reset between requests: a unit knows its number, and data before the first
unit is never read.
"""

import torch
import torch.nn.functional as F
from torch import Tensor

from sglang_omni.models.ming.speech.fast.layers import run_decoder_layers
from sglang_omni.models.ming.speech.fast.ops import Ops
from sglang_omni.models.ming.speech.fast.packed import pack_decoder
from sglang_omni.models.ming.speech.fast.state import SlotState
from sglang_omni.models.ming.speech.kernels.vocoder import (
    compute_spectrum,
    overlap_add,
    upsample_patch,
)
from sglang_omni.models.ming.speech.kernels.window import window_attention
from sglang_omni.models.ming.speech.vae import MAX_MAGNITUDE, AudioVAE
from sglang_omni.models.ming.speech.vae_slots import compute_unit_envelopes
from sglang_omni.protocol.errors import CheckpointError

# The rows of the output layer are padded to a multiple of this, which aligns its memory.
ALIGNMENT = 16


class FastVocoder:
    """Packed decoder weights, and the cache and overlap of every slot."""

    def __init__(self, vae: AudioVAE, state: SlotState, max_patches: int) -> None:
        decoder, like = vae.decoder, vae.decoder.fc1.weight
        config = decoder.decoder.config
        if config.window is None:
            raise CheckpointError("streaming needs a sliding window; the VAE decoder has none")
        self._decoder, self._state, self._window = decoder, state, config.window
        self.frames = state.ring.shape[2] * decoder.patch
        self._stack = pack_decoder(decoder.decoder, max_patches * self.frames)
        slots, ring = state.spare + 1, config.window + self.frames
        shape = (len(self._stack.layers), slots, config.num_key_value_heads, ring, config.head_dim)
        self._keys, self._values = like.new_zeros(shape), like.new_zeros(shape)
        istft = decoder.head.istft
        self._istft, self._bins = istft, istft.size // 2 + 1
        self._envelopes = compute_unit_envelopes(istft, self.frames)
        self._carry = torch.zeros(slots, 2, istft.size - istft.hop, device=like.device)
        padding = -decoder.head.out.out_features % ALIGNMENT
        self._out = F.pad(decoder.head.out.weight, (0, 0, 0, padding))
        self._out_bias = F.pad(decoder.head.out.bias, (0, padding))

    @property
    def unit_samples(self) -> int:
        """Return the number of complete samples of a unit."""
        return self.frames * self._istft.hop

    @property
    def crop(self) -> int:
        """Return how many samples the first unit of a stream lacks and the last unit adds."""
        return self._istft.crop

    def decode(self, index: Tensor, patches: Tensor, final: Tensor, ops: Ops) -> Tensor:
        """Decode patch number `patches` [n] of each slot `index` [n]: float32 [n, samples].

        `final` [n] is 1 where no patch follows. The complete samples come first, then those that
        are complete only if nothing follows.
        """
        n = len(index)
        latents = upsample_patch(
            self._state.ring, index, patches, final, self._decoder.patch, self._state.past
        )
        # The input layer is linear, so it can follow the interpolation.
        x = self._decoder.fc1(latents).flatten(0, 1)
        starts = patches * self.frames

        def attend(layer: int, qkv: Tensor) -> Tensor:
            return window_attention(
                qkv.view(n, self.frames, -1),
                self._keys[layer],
                self._values[layer],
                index,
                starts,
                self._stack.cos,
                self._stack.sin,
                self._window,
                pdl=ops.pdl,
            )

        rows = run_decoder_layers(self._stack, x, attend, ops)
        spectra = compute_spectrum(
            F.linear(rows, self._out, self._out_bias), self._bins, MAX_MAGNITUDE
        )
        frames = torch.fft.irfft(spectra, n=self._istft.size).view(n, self.frames, -1)
        return overlap_add(frames, self._istft.window, self._envelopes, self._carry, index, patches)
