"""Plain streaming VAE decoder: one signal, chunks of any length, equal to the full decode.

One class per piece of state: the upsampler needs the next latent before it can finish a chunk,
the transformer attends to the last 63 frames, and inverse-STFT frames overlap. The batched form
for serving is `sglang_omni/models/ming/speech/vae_slots.py`.
"""

import torch
import torch.nn.functional as F
from torch import Tensor

from sglang_omni.models.ming.speech.qwen2 import Qwen2Stack, build_causal_mask
from sglang_omni.models.ming.speech.vae import ISTFT, AudioVAE, upsample
from sglang_omni.protocol.errors import CheckpointError, InvalidRequest


class UpsampleStream:
    """Streaming linear upsampling by `factor`, with one chunk of look-ahead."""

    def __init__(self, factor: int) -> None:
        self._factor = factor
        self._chunk: Tensor | None = None
        self._before: Tensor | None = None

    def push(self, rows: Tensor, last: bool) -> Tensor:
        """Add rows [batch, time, dim] and return the previous chunk, upsampled.

        The last chunk is returned as well.
        """
        out = []
        if self._chunk is not None:
            out.append(self._upsample(self._chunk, rows[:, :1]))
        if last:
            out.append(self._upsample(rows, rows[:, -1:]))
        self._chunk = rows
        return torch.cat(out, dim=1) if out else rows[:, :0]

    def _upsample(self, rows: Tensor, after: Tensor) -> Tensor:
        """Upsample rows between the previous row and the row `after`."""
        before = rows[:, :1] if self._before is None else self._before
        self._before = rows[:, -1:]
        upsampled = upsample(torch.cat((before, rows, after), dim=1), self._factor)
        return upsampled[:, self._factor : -self._factor]


class WindowCache:
    """Keys and values of the last `window - 1` positions of every layer of a stack."""

    def __init__(self, stack: Qwen2Stack) -> None:
        if stack.config.window is None:
            raise CheckpointError("streaming needs a sliding window; the VAE decoder has none")
        self._stack, self._window = stack, stack.config.window
        self._stored: list[tuple[Tensor, Tensor] | None] = [None] * len(stack.layers)
        self._seen = 0

    def forward(self, x: Tensor) -> Tensor:
        """Run the stack on new rows x [batch, time, hidden]."""
        past = min(self._seen, self._window - 1)
        positions = torch.arange(self._seen - past, self._seen + x.shape[1], device=x.device)
        self.cos, self.sin = self._stack.compute_tables(positions[None, past:], x.dtype)
        self._mask = build_causal_mask(positions[past:], positions, self._window)
        self._seen += x.shape[1]
        return self._stack(x, self)

    def attend(self, layer: int, q: Tensor, k: Tensor, v: Tensor) -> Tensor:
        """Attend over the window and the new positions, and keep the last of both."""
        stored = self._stored[layer]
        if stored is not None:
            k, v = torch.cat((stored[0], k), dim=2), torch.cat((stored[1], v), dim=2)
        keep = self._window - 1
        self._stored[layer] = (k[:, :, -keep:], v[:, :, -keep:])
        return F.scaled_dot_product_attention(q, k, v, attn_mask=self._mask, enable_gqa=True)


class OverlapStream:
    """Streaming overlap-add of inverse-STFT frames; the last three hops wait for later frames."""

    def __init__(self, istft: ISTFT) -> None:
        self._istft = istft
        self._overlap = istft.size - istft.hop
        self._started = False
        self._audio: Tensor | None = None
        self._envelope: Tensor | None = None

    def push(self, frames: Tensor, last: bool) -> Tensor:
        """Add windowed frames [batch, frames, 4 * hop] and return samples [batch, samples]."""
        audio = self._add_tail(self._istft.overlap_add(frames), self._audio)
        envelope = self._add_tail(self._istft.compute_envelope(frames.shape[1]), self._envelope)
        self._audio, self._envelope = audio[:, -self._overlap :], envelope[:, -self._overlap :]
        start = 0 if self._started else self._istft.crop
        end = -self._istft.crop if last else -self._overlap
        self._started = True
        return audio[:, start:end] / envelope[:, start:end]

    def _add_tail(self, new: Tensor, tail: Tensor | None) -> Tensor:
        if tail is not None:
            new[:, : self._overlap] += tail
        return new


class VaeStream:
    """Streaming decoder of one signal. The joined outputs equal `VAEDecoder.forward`."""

    def __init__(self, vae: AudioVAE) -> None:
        self._decoder = vae.decoder
        self._upsampler = UpsampleStream(vae.decoder.patch)
        self._cache = WindowCache(vae.decoder.decoder)
        self._overlap = OverlapStream(vae.decoder.head.istft)

    def push(self, latents: Tensor, last: bool) -> Tensor:
        """Decode a chunk [time, dim] and return the complete samples, float32 [n].

        The first chunk returns no samples unless it is the last.

        Raises:
            InvalidRequest: The chunk is empty.
        """
        if latents.shape[0] == 0:
            raise InvalidRequest("a chunk of latents must not be empty")
        rows = self._decoder.fc1(latents[None].to(self._decoder.fc1.weight.dtype))
        rows = self._upsampler.push(rows, last)
        if rows.shape[1] == 0:
            return latents.new_zeros(0, dtype=torch.float32)
        frames = self._decoder.head(self._cache.forward(rows))
        return self._overlap.push(frames, last)[0]
