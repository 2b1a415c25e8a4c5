"""Run the diffusion transformer over a batch of one kind: its own weights, and equal results.

The class of diffusers takes a list of pictures and treats them one after the other. Here the
pictures of a batch have one size and equally many condition rows.
"""

from dataclasses import dataclass
from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor

from cookbook.ming_mini.compilation import Runner, run_eager
from sglang_omni.models.ming.image.denoiser import normalize_rows
from sglang_omni.models.ming.image.fast.denoiser import PATCH, patchify, unpatchify
from sglang_omni.models.ming.image.fast.rope import (
    LatentGrid,
    Rope,
    RopeCache,
    caption_positions,
    pad_length,
)

PATCH_KEY = f"{PATCH}-1"


@dataclass(frozen=True)
class Conditions:
    """What a batch is drawn from.

    `rows` [N, rows, width] are the connector's, zero for no condition; `reference`
    [N, 16, height, width] are latents of the pictures to edit, or None.
    """

    rows: Tensor
    reference: Tensor | None


class VelocityModel:
    """Predicts velocities with the weights of a transformer; see `Denoiser`."""

    def __init__(self, transformer: Any, run: Runner = run_eager) -> None:
        self._transformer, self._run = transformer, run
        device = transformer.x_pad_token.device
        self._rope = RopeCache(transformer.axes_dims, transformer.rope_theta, device)
        # Kept, because a recorded step must not copy from the host.
        self._caption_ropes: dict[int, Rope] = {}

    def predict(self, latents: Tensor, tau: Tensor, conditions: Conditions) -> Tensor:
        """Return velocities, float32 [N, 16, height, width].

        Args:
            latents: [N, 16, height, width], float32.
            tau: One minus the noise level, float32 [N].
            conditions: See `Conditions`.
        """
        model = self._transformer
        height, width = (side // PATCH for side in latents.shape[2:])
        frames = [latents] if conditions.reference is None else [latents, conditions.reference]
        patches = torch.cat([patchify(frame) for frame in frames], dim=1)
        captions = pad_length(conditions.rows.shape[1])
        tables = self._rope.get(LatentGrid(len(frames), height, width), captions)
        time = model.t_embedder(tau * model.t_scale)
        x = _pad(model.all_x_embedder[PATCH_KEY](patches), model.x_pad_token)
        for block in model.noise_refiner:
            x = self._run(run_block, block, x, time, tables.image)
        rows = _pad(model.cap_embedder(normalize_rows(conditions.rows)), model.cap_pad_token)
        for block in model.context_refiner:
            rows = self._run(run_block, block, rows, None, self._caption_rope(captions))
        x = torch.cat((x, rows), dim=1)
        for block in model.layers:
            x = self._run(run_block, block, x, time, tables.sequence)
        out = model.all_final_layer[PATCH_KEY](x[:, : height * width], c=time)
        return unpatchify(out.float(), height, width)

    def _caption_rope(self, length: int) -> Rope:
        if length not in self._caption_ropes:
            self._caption_ropes[length] = self._rope.compute(caption_positions(length))
        return self._caption_ropes[length]


def _pad(x: Tensor, row: Tensor) -> Tensor:
    """Return x [N, length, width] with copies of a row up to the next multiple of 32."""
    missing = pad_length(x.shape[1]) - x.shape[1]
    if not missing:
        return x
    return torch.cat((x, row.to(x.dtype).expand(len(x), missing, -1)), dim=1)


def run_block(block: Any, x: Tensor, time: Tensor | None, rope: Rope) -> Tensor:
    """Run one block over tokens [N, length, width]; without `time` it has no modulation."""
    if time is None:
        x = x + block.attention_norm2(attend(block.attention, block.attention_norm1(x), rope))
        return x + block.ffn_norm2(block.feed_forward(block.ffn_norm1(x)))
    modulation = block.adaLN_modulation(time)[:, None].chunk(4, dim=-1)
    scale_attention, gate_attention, scale_mlp, gate_mlp = modulation
    seen = attend(block.attention, block.attention_norm1(x) * (1 + scale_attention), rope)
    x = x + gate_attention.tanh() * block.attention_norm2(seen)
    made = block.feed_forward(block.ffn_norm1(x) * (1 + scale_mlp))
    return x + gate_mlp.tanh() * block.ffn_norm2(made)


def attend(attention: Any, x: Tensor, rope: Rope) -> Tensor:
    """Attend from all tokens to all."""
    projections = attention.to_q, attention.to_k, attention.to_v
    q, k, v = (one(x).unflatten(-1, (attention.heads, -1)) for one in projections)
    q, k = rotate(attention.norm_q(q), rope), rotate(attention.norm_k(k), rope)
    q, k, v = (part.to(v.dtype).transpose(1, 2) for part in (q, k, v))
    out = F.scaled_dot_product_attention(q, k, v)
    return attention.to_out[0](out.transpose(1, 2).flatten(2))


def rotate(x: Tensor, rope: Rope) -> Tensor:
    """Rotate neighbouring pairs of x [N, length, heads, width], in float32."""
    even, odd = x.float().unflatten(-1, (-1, 2)).unbind(-1)
    cos, sin = rope.cos[:, None], rope.sin[:, None]
    return torch.stack((even * cos - odd * sin, even * sin + odd * cos), dim=-1).flatten(-2)
