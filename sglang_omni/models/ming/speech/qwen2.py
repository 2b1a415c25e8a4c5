"""The Qwen2 transformer stack that the talker and the audio VAE share.

The stack holds the weights and the arithmetic. An `AttentionContext` holds positions, masks and
stored keys. So one stack serves a plain full pass, slotted decoding and windowed streaming.
Modules have the tensor names of Hugging Face's `Qwen2Model`.
"""

from typing import Protocol

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from sglang_omni.models.ming.config import Qwen2Config


class AttentionContext(Protocol):
    """Positions, mask and keys of one forward pass.

    `cos` and `sin` have shape [batch, 1, time, head_dim].
    """

    cos: Tensor
    sin: Tensor

    def attend(self, layer: int, q: Tensor, k: Tensor, v: Tensor) -> Tensor:
        """Attend with rotated q [batch, heads, time, dim] and k, v [batch, kv_heads, time, dim].

        Returns:
            [batch, heads, time, dim].
        """
        ...


def compute_inverse_frequencies(head_dim: int, theta: float) -> Tensor:
    """Return rotary frequencies `theta^(-2k/head_dim)`, float32 [head_dim / 2]."""
    exponent = torch.arange(0, head_dim, 2, dtype=torch.float32) / head_dim
    return 1.0 / theta**exponent


def compute_rotary_tables(
    positions: Tensor, inv_freq: Tensor, dtype: torch.dtype
) -> tuple[Tensor, Tensor]:
    """Return cos and sin of positions [batch, time]: [batch, 1, time, 2 * len(inv_freq)]."""
    angles = positions[:, None, :, None].float() * inv_freq
    angles = torch.cat((angles, angles), dim=-1)
    return angles.cos().to(dtype), angles.sin().to(dtype)


def rotate_half(x: Tensor) -> Tensor:
    """Map (x1, x2), the halves of the last axis, to (-x2, x1)."""
    first, second = x.chunk(2, dim=-1)
    return torch.cat((-second, first), dim=-1)


def build_causal_mask(queries: Tensor, keys: Tensor, window: int | None) -> Tensor:
    """Return the boolean attention mask [..., query, key] for absolute positions.

    A query attends to keys at its own and earlier positions; with a window, to the last `window` of
    them.
    """
    distance = queries[..., :, None] - keys[..., None, :]
    visible = distance >= 0
    return visible if window is None else visible & (distance < window)


class RMSNorm(nn.Module):
    """RMS normalisation in float32, cast to the input dtype, then multiplied by the weight."""

    def __init__(self, size: int, eps: float) -> None:
        super().__init__()
        self.weight = nn.Parameter(torch.ones(size))
        self.eps = eps

    def forward(self, x: Tensor) -> Tensor:
        """Return x [..., width] normalised over the width."""
        x_f32 = x.float()
        scale = torch.rsqrt(x_f32.pow(2).mean(-1, keepdim=True) + self.eps)
        return self.weight * (x_f32 * scale).to(x.dtype)


class Qwen2Attention(nn.Module):
    """Grouped-query attention with biases on q, k and v only."""

    def __init__(self, config: Qwen2Config, layer: int) -> None:
        super().__init__()
        self.layer, self.head_dim = layer, config.head_dim
        q_size = config.num_attention_heads * config.head_dim
        kv_size = config.num_key_value_heads * config.head_dim
        self.q_proj = nn.Linear(config.hidden_size, q_size)
        self.k_proj = nn.Linear(config.hidden_size, kv_size)
        self.v_proj = nn.Linear(config.hidden_size, kv_size)
        self.o_proj = nn.Linear(q_size, config.hidden_size, bias=False)

    def forward(self, x: Tensor, context: AttentionContext) -> Tensor:
        """Return [batch, time, hidden] of x [batch, time, hidden]."""
        q, k, v = (self._split_heads(proj(x)) for proj in (self.q_proj, self.k_proj, self.v_proj))
        q = q * context.cos + rotate_half(q) * context.sin
        k = k * context.cos + rotate_half(k) * context.sin
        out = context.attend(self.layer, q, k, v)
        return self.o_proj(out.transpose(1, 2).flatten(2))

    def _split_heads(self, x: Tensor) -> Tensor:
        return x.unflatten(-1, (-1, self.head_dim)).transpose(1, 2)


class Qwen2MLP(nn.Module):
    """SwiGLU: `down(silu(gate(x)) * up(x))`."""

    def __init__(self, config: Qwen2Config) -> None:
        super().__init__()
        self.gate_proj = nn.Linear(config.hidden_size, config.intermediate_size, bias=False)
        self.up_proj = nn.Linear(config.hidden_size, config.intermediate_size, bias=False)
        self.down_proj = nn.Linear(config.intermediate_size, config.hidden_size, bias=False)

    def forward(self, x: Tensor) -> Tensor:
        """Return [..., hidden] of x [..., hidden]."""
        return self.down_proj(F.silu(self.gate_proj(x)) * self.up_proj(x))


class Qwen2Layer(nn.Module):
    """One pre-norm transformer layer."""

    def __init__(self, config: Qwen2Config, layer: int) -> None:
        super().__init__()
        self.self_attn = Qwen2Attention(config, layer)
        self.mlp = Qwen2MLP(config)
        self.input_layernorm = RMSNorm(config.hidden_size, config.rms_norm_eps)
        self.post_attention_layernorm = RMSNorm(config.hidden_size, config.rms_norm_eps)

    def forward(self, x: Tensor, context: AttentionContext) -> Tensor:
        """Return [batch, time, hidden] of x [batch, time, hidden]."""
        x = x + self.self_attn(self.input_layernorm(x), context)
        return x + self.mlp(self.post_attention_layernorm(x))


class Qwen2Stack(nn.Module):
    """Qwen2 layers and final norm; `layers` limits how many layers run."""

    inv_freq: Tensor

    def __init__(self, config: Qwen2Config, *, layers: int | None = None) -> None:
        super().__init__()
        self.config = config
        count = config.num_hidden_layers if layers is None else layers
        self.layers = nn.ModuleList(Qwen2Layer(config, index) for index in range(count))
        self.norm = RMSNorm(config.hidden_size, config.rms_norm_eps)
        frequencies = compute_inverse_frequencies(config.head_dim, config.rope_theta)
        self.register_buffer("inv_freq", frequencies, persistent=False)

    def forward(self, x: Tensor, context: AttentionContext) -> Tensor:
        """Run embeddings [batch, time, hidden] through the stack; the shape stays."""
        for layer in self.layers:
            x = layer(x, context)
        return self.norm(x)

    def compute_tables(self, positions: Tensor, dtype: torch.dtype) -> tuple[Tensor, Tensor]:
        """Return the rotary tables of integer positions [batch, time]."""
        return compute_rotary_tables(positions, self.inv_freq, dtype)

    def forward_full(self, x: Tensor) -> Tensor:
        """Run one causal pass over x [batch, time, hidden] without a cache: the plain reference."""
        return self(x, FullContext(self, x))


class FullContext:
    """Causal attention within one pass, with the sliding window of the stack if it has one."""

    def __init__(self, stack: Qwen2Stack, x: Tensor) -> None:
        positions = torch.arange(x.shape[1], device=x.device)
        self.cos, self.sin = stack.compute_tables(positions[None], x.dtype)
        self._mask = build_causal_mask(positions, positions, stack.config.window)

    def attend(self, layer: int, q: Tensor, k: Tensor, v: Tensor) -> Tensor:
        """Attend among the positions of this pass; see `AttentionContext.attend`."""
        return F.scaled_dot_product_attention(q, k, v, attn_mask=self._mask, enable_gqa=True)
