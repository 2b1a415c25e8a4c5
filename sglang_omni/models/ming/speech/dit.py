"""The talker's DiT blocks, the flow model built from them, and the patch aggregator.

The blocks have no modulation: time and condition enter as one extra token. Modules have the
tensor names of the checkpoint.
"""

import math

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from sglang_omni.models.ming.config import DiTConfig
from sglang_omni.models.ming.speech.qwen2 import compute_inverse_frequencies

NORM_EPS = 1e-6
ROTARY_THETA = 10000.0
TIME_WIDTH = 256
TIME_SCALE = 1000.0

Rotary = tuple[Tensor, Tensor]
ALL_ROWS = slice(None)


class DiTRMSNorm(nn.Module):
    """RMS norm that, unlike Qwen2, applies the weight before the cast to the input dtype."""

    def __init__(self, size: int) -> None:
        super().__init__()
        self.weight = nn.Parameter(torch.ones(size))

    def forward(self, x: Tensor) -> Tensor:
        """Return x [..., width] normalised over the width, in the dtype of the weight."""
        return F.rms_norm(x.to(self.weight.dtype), self.weight.shape, self.weight, NORM_EPS)


class RotaryEmbedding(nn.Module):
    """Rotary tables for interleaved pairs: each frequency serves dimensions 2k and 2k + 1.

    Angles, cos and sin stay in the dtype of the module. A bfloat16 model rounds them, as the
    released model does.
    """

    inv_freq: Tensor

    def __init__(self, head_dim: int) -> None:
        super().__init__()
        frequencies = compute_inverse_frequencies(head_dim, ROTARY_THETA)
        self.register_buffer("inv_freq", frequencies, persistent=False)

    def forward(self, length: int) -> Rotary:
        """Return cos and sin of positions 0 .. length - 1, each [length, head_dim]."""
        positions = torch.arange(length, device=self.inv_freq.device, dtype=self.inv_freq.dtype)
        angles = torch.outer(positions, self.inv_freq).repeat_interleave(2, dim=-1)
        return angles.cos(), angles.sin()


def rotate_pairs(x: Tensor) -> Tensor:
    """Map each adjacent pair (a, b) of the last axis to (-b, a)."""
    even, odd = x.unflatten(-1, (-1, 2)).unbind(-1)
    return torch.stack((-odd, even), dim=-1).flatten(-2)


class DiTAttention(nn.Module):
    """Bidirectional attention without a mask; all projections have biases."""

    def __init__(self, size: int, heads: int) -> None:
        super().__init__()
        self.heads = heads
        self.to_q = nn.Linear(size, size)
        self.to_k = nn.Linear(size, size)
        self.to_v = nn.Linear(size, size)
        self.to_out = nn.ModuleList([nn.Linear(size, size)])

    def forward(self, x: Tensor, rotary: Rotary, rows: slice) -> Tensor:
        """Attend over x [batch, time, hidden] from the queries `rows`: [batch, rows, hidden]."""
        cos, sin = rotary
        q, k, v = (self._split(y) for y in (self.to_q(x[:, rows]), self.to_k(x), self.to_v(x)))
        q = q * cos[rows] + rotate_pairs(q) * sin[rows]
        k = k * cos + rotate_pairs(k) * sin
        out = F.scaled_dot_product_attention(q, k, v)
        return self.to_out[0](out.transpose(1, 2).flatten(2))

    def _split(self, x: Tensor) -> Tensor:
        return x.unflatten(-1, (self.heads, -1)).transpose(1, 2)


class FeedForward(nn.Module):
    """Linear, GELU (tanh form), linear. The indices are those of the checkpoint."""

    def __init__(self, size: int, ratio: int) -> None:
        super().__init__()
        widen = nn.Sequential(nn.Linear(size, size * ratio), nn.GELU(approximate="tanh"))
        # Index 1 of the checkpoint is a dropout, which is inactive.
        self.ff = nn.Sequential(widen, nn.Identity(), nn.Linear(size * ratio, size))

    def forward(self, x: Tensor) -> Tensor:
        """Return [..., width] of x [..., width]."""
        return self.ff(x)


class DiTBlock(nn.Module):
    """One pre-norm transformer block."""

    def __init__(self, config: DiTConfig) -> None:
        super().__init__()
        self.norm1 = DiTRMSNorm(config.hidden_size)
        self.attn = DiTAttention(config.hidden_size, config.num_heads)
        self.norm2 = DiTRMSNorm(config.hidden_size)
        self.mlp = FeedForward(config.hidden_size, config.mlp_ratio)

    def forward(self, x: Tensor, rotary: Rotary, rows: slice = ALL_ROWS) -> Tensor:
        """Return `rows` of the block output for x [batch, time, hidden]."""
        x = x[:, rows] + self.attn(self.norm1(x), rotary, rows)
        return x + self.mlp(self.norm2(x))


class FinalLayer(nn.Module):
    """Final norm and output projection."""

    def __init__(self, size: int, out: int) -> None:
        super().__init__()
        self.norm_final = DiTRMSNorm(size)
        self.linear = nn.Linear(size, out)

    def forward(self, x: Tensor) -> Tensor:
        """Return [..., outputs] of x [..., width]."""
        return self.linear(self.norm_final(x))


class BlockStack(nn.Module):
    """Input projection, rotary tables, blocks and final layer, shared by both models."""

    def __init__(self, config: DiTConfig, out: int) -> None:
        super().__init__()
        self.x_embedder = nn.Linear(config.in_channels, config.hidden_size)
        self.rotary_embed = RotaryEmbedding(config.hidden_size // config.num_heads)
        self.blocks = nn.ModuleList(DiTBlock(config) for _ in range(config.depth))
        self.final_layer = FinalLayer(config.hidden_size, out)

    def read_out(self, tokens: Tensor, rows: slice) -> Tensor:
        """Run all blocks and the final layer on tokens [batch, time, hidden]: [batch, rows, out].

        The last block computes only `rows`, which is exact and saves a tenth of the arithmetic.
        """
        rotary = self.rotary_embed(tokens.shape[1])
        *body, last = self.blocks
        for block in body:
            tokens = block(tokens, rotary)
        return self.final_layer(last(tokens, rotary, rows))


def embed_time(t: Tensor) -> Tensor:
    """Return sine and cosine features [batch, 256] of times t [batch] in [0, 1], in t's dtype."""
    half = TIME_WIDTH // 2
    steps = torch.arange(half, device=t.device, dtype=torch.float32)
    frequencies = torch.exp(steps * (-math.log(10000.0) / (half - 1)))
    # Scaled in the dtype of t: a bfloat16 model sees 1000 t rounded to bfloat16.
    angles = (TIME_SCALE * t).float()[:, None] * frequencies
    return torch.cat((angles.sin(), angles.cos()), dim=-1).to(t.dtype)


class TimeEmbedder(nn.Module):
    """MLP over sinusoidal features of the flow time."""

    def __init__(self, size: int) -> None:
        super().__init__()
        self.time_mlp = nn.Sequential(nn.Linear(TIME_WIDTH, size), nn.SiLU(), nn.Linear(size, size))

    def forward(self, t: Tensor) -> Tensor:
        """Return [batch, width] of flow times t [batch]."""
        return self.time_mlp(embed_time(t))


class ConditionEmbedder(nn.Module):
    """Projection of the backbone state; the null condition is a zero state."""

    def __init__(self, condition: int, size: int) -> None:
        super().__init__()
        self.cond_embedder = nn.Linear(condition, size)

    def forward(self, c: Tensor) -> Tensor:
        """Return [..., width] of backbone states c [..., hidden]."""
        return self.cond_embedder(c)


class DiT(BlockStack):
    """The flow model: predict the velocity of a patch from its history and one condition."""

    def __init__(self, config: DiTConfig, condition: int) -> None:
        super().__init__(config, config.in_channels)
        self.t_embedder = TimeEmbedder(config.hidden_size)
        self.c_embedder = ConditionEmbedder(condition, config.hidden_size)

    def forward(self, x: Tensor, t: Tensor, c: Tensor, history: Tensor) -> Tensor:
        """Return the velocity of x, of the same shape.

        Args:
            x: Noisy patch [batch, patch, latent].
            t: Flow times [batch].
            c: Conditions [batch, condition].
            history: Latents before the patch [batch, past, latent].
        """
        tokens = self.x_embedder(torch.cat((history, x), dim=1))
        return self.compute_velocity(self.t_embedder(t) + self.c_embedder(c), tokens, x.shape[1])

    def compute_velocity(self, head: Tensor, tokens: Tensor, patch: int) -> Tensor:
        """Run one head token [batch, hidden] and latent tokens [batch, time, hidden] after it.

        Returns:
            The last `patch` rows after the output projection, [batch, patch, latent].
        """
        return self.read_out(torch.cat((head[:, None], tokens), dim=1), slice(-patch, None))


class Aggregator(BlockStack):
    """Turn a patch of latents into the next input embedding of the backbone."""

    def __init__(self, config: DiTConfig, out: int) -> None:
        super().__init__(config, out)
        self.word_embedder = nn.Embedding(1, config.hidden_size)

    def forward(self, patches: Tensor) -> Tensor:
        """Return embeddings [batch, out] of patches [batch, patch, latent], from the CLS token."""
        cls = self.word_embedder.weight.expand(patches.shape[0], 1, -1)
        tokens = torch.cat((cls, self.x_embedder(patches)), dim=1)
        return self.read_out(tokens, slice(0, 1))[:, 0]
