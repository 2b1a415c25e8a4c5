"""The glyph branch: a byte-level T5 encoder and a mapper to condition rows.

The rows tell the diffusion transformer how the text that the image is to show is spelled. Modules
have the tensor names of the checkpoint, which are those of Hugging Face's T5.
"""

import math
import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from sglang_omni.models.ming.image.config import GlyphConfig, T5Config

# ByT5's tokenizer: three special ids, the bytes, and 125 reserved ids. Then the checkpoint's own.
PAD, EOS, FIRST_BYTE, FIRST_SPECIAL = 0, 1, 3, 384


@dataclass(frozen=True)
class GlyphTokenizer:
    """Bytes as token ids, with the special tokens of a checkpoint."""

    special_tokens: tuple[str, ...]
    max_length: int

    def encode(self, text: str) -> list[int]:
        """Return at most `max_length` ids, the last of which is the end token."""
        pattern = "|".join(map(re.escape, self.special_tokens))
        pieces = re.split(f"({pattern})", text) if pattern else [text]
        ids: list[int] = []
        for piece in pieces:
            if piece in self.special_tokens:
                ids.append(FIRST_SPECIAL + self.special_tokens.index(piece))
            else:
                ids += [FIRST_BYTE + byte for byte in piece.encode()]
        return [*ids[: self.max_length - 1], EOS]

    def encode_batch(self, texts: Sequence[str]) -> tuple[Tensor, Tensor]:
        """Return ids and mask, both int64 [texts, max_length], padded on the right."""
        rows = [self.encode(text) for text in texts]
        ids = torch.tensor([row + [PAD] * (self.max_length - len(row)) for row in rows])
        lengths = torch.tensor([len(row) for row in rows])
        mask = torch.arange(self.max_length) < lengths[:, None]
        return ids, mask.long()


class T5Norm(nn.Module):
    """RMS normalisation in float32, cast to the dtype of the weight, then multiplied by it."""

    def __init__(self, size: int, eps: float) -> None:
        super().__init__()
        self.weight = nn.Parameter(torch.ones(size))
        self.eps = eps

    def forward(self, x: Tensor) -> Tensor:
        """Return x [..., width] normalised over the width."""
        scale = torch.rsqrt(x.float().pow(2).mean(-1, keepdim=True) + self.eps)
        return self.weight * (x * scale).to(self.weight.dtype)


class T5Attention(nn.Module):
    """Attention without scaling; the first layer of a stack owns the relative positions."""

    def __init__(self, config: T5Config, has_bias: bool) -> None:
        super().__init__()
        width = config.num_heads * config.d_kv
        self.heads, self.config = config.num_heads, config
        self.q = nn.Linear(config.d_model, width, bias=False)
        self.k = nn.Linear(config.d_model, width, bias=False)
        self.v = nn.Linear(config.d_model, width, bias=False)
        self.o = nn.Linear(width, config.d_model, bias=False)
        if has_bias:
            buckets = config.relative_attention_num_buckets
            self.relative_attention_bias = nn.Embedding(buckets, config.num_heads)

    def forward(self, x: Tensor, bias: Tensor) -> Tensor:
        """Return [batch, time, d_model]; `bias` [batch, heads, time, time] is added to scores."""
        q, k, v = (proj(x).unflatten(-1, (self.heads, -1)) for proj in (self.q, self.k, self.v))
        q, k, v = (part.transpose(1, 2) for part in (q, k, v))
        out = F.scaled_dot_product_attention(q, k, v, attn_mask=bias, scale=1.0)
        return self.o(out.transpose(1, 2).flatten(2))

    def compute_bias(self, mask: Tensor) -> Tensor:
        """Return relative biases and the mask [batch, time] as one tensor, as `forward` needs."""
        length = mask.shape[1]
        positions = torch.arange(length, device=mask.device)
        buckets = bucket_distances(positions[None, :] - positions[:, None], self.config)
        bias = self.relative_attention_bias(buckets).permute(2, 0, 1)[None]
        hidden = (1 - mask[:, None, None, :]).to(bias.dtype) * torch.finfo(bias.dtype).min
        return bias + hidden


def bucket_distances(distances: Tensor, config: T5Config) -> Tensor:
    """Return the bucket of each distance (key minus query): exact if near, logarithmic if far."""
    half = config.relative_attention_num_buckets // 2
    exact = half // 2
    size = distances.abs()
    ratio = (size.clamp_min(1).float() / exact).log()
    ratio = ratio / math.log(config.relative_attention_max_distance / exact)
    far = (exact + (ratio * (half - exact)).long()).clamp_max(half - 1)
    return (distances > 0).long() * half + torch.where(size < exact, size, far)


class T5SelfAttentionLayer(nn.Module):
    """Pre-norm attention with its residual."""

    def __init__(self, config: T5Config, has_bias: bool) -> None:
        super().__init__()
        self.SelfAttention = T5Attention(config, has_bias)
        self.layer_norm = T5Norm(config.d_model, config.layer_norm_epsilon)

    def forward(self, x: Tensor, bias: Tensor) -> Tensor:
        """Return [batch, time, d_model]."""
        return x + self.SelfAttention(self.layer_norm(x), bias)


class T5GatedMLP(nn.Module):
    """`wo(gelu(wi_0(x)) * wi_1(x))`."""

    def __init__(self, config: T5Config) -> None:
        super().__init__()
        self.wi_0 = nn.Linear(config.d_model, config.d_ff, bias=False)
        self.wi_1 = nn.Linear(config.d_model, config.d_ff, bias=False)
        self.wo = nn.Linear(config.d_ff, config.d_model, bias=False)

    def forward(self, x: Tensor) -> Tensor:
        """Return [..., d_model] of x [..., d_model]."""
        return self.wo(F.gelu(self.wi_0(x), approximate="tanh") * self.wi_1(x))


class T5MLPLayer(nn.Module):
    """Pre-norm MLP with its residual."""

    def __init__(self, config: T5Config) -> None:
        super().__init__()
        self.DenseReluDense = T5GatedMLP(config)
        self.layer_norm = T5Norm(config.d_model, config.layer_norm_epsilon)

    def forward(self, x: Tensor) -> Tensor:
        """Return [batch, time, d_model]."""
        return x + self.DenseReluDense(self.layer_norm(x))


class T5Block(nn.Module):
    """One layer of the encoder."""

    def __init__(self, config: T5Config, has_bias: bool) -> None:
        super().__init__()
        self.layer = nn.ModuleList([T5SelfAttentionLayer(config, has_bias), T5MLPLayer(config)])

    def forward(self, x: Tensor, bias: Tensor) -> Tensor:
        """Return [batch, time, d_model]."""
        return self.layer[1](self.layer[0](x, bias))


def _build_blocks(config: T5Config, layers: int) -> nn.ModuleList:
    return nn.ModuleList(T5Block(config, index == 0) for index in range(layers))


def _run_blocks(blocks: Any, x: Tensor, mask: Tensor) -> Tensor:
    bias = blocks[0].layer[0].SelfAttention.compute_bias(mask)
    for block in blocks:
        x = block(x, bias)
    return x


class GlyphEncoder(nn.Module):
    """The byte-level T5 encoder."""

    def __init__(self, config: GlyphConfig) -> None:
        super().__init__()
        t5 = config.encoder
        self.embed_tokens = nn.Embedding(FIRST_SPECIAL + len(config.special_tokens), t5.d_model)
        self.block = _build_blocks(t5, t5.num_layers)
        self.final_layer_norm = T5Norm(t5.d_model, t5.layer_norm_epsilon)

    def forward(self, ids: Tensor, mask: Tensor) -> Tensor:
        """Return states [batch, time, d_model] of ids and mask [batch, time]."""
        return self.final_layer_norm(_run_blocks(self.block, self.embed_tokens(ids), mask))


class GlyphMapper(nn.Module):
    """T5 layers and a projection to the width of the condition rows."""

    def __init__(self, config: GlyphConfig) -> None:
        super().__init__()
        t5, width = config.encoder, config.mapper_width
        self.blocks = _build_blocks(t5, config.mapper_layers)
        self.layer_norm = T5Norm(t5.d_model, t5.layer_norm_epsilon)
        self.channel_mapper = nn.Linear(t5.d_model, width)
        self.final_layer_norm = T5Norm(width, t5.layer_norm_epsilon)

    def forward(self, states: Tensor, mask: Tensor) -> Tensor:
        """Return rows [batch, time, width], zero at padding."""
        x = self.layer_norm(_run_blocks(self.blocks, states, mask))
        return self.final_layer_norm(self.channel_mapper(x)) * mask[..., None]


class GlyphBranch:
    """Tokenizer, encoder and mapper."""

    def __init__(
        self, tokenizer: GlyphTokenizer, encoder: GlyphEncoder, mapper: GlyphMapper
    ) -> None:
        self.tokenizer, self.encoder, self.mapper = tokenizer, encoder, mapper

    def compute_rows(self, text: str) -> Tensor:
        """Return the rows [1, max length, width] of a text, zero at padding."""
        ids, mask = self.tokenizer.encode_batch([text])
        device = self.encoder.embed_tokens.weight.device
        ids, mask = ids.to(device), mask.to(device)
        return self.mapper(self.encoder(ids, mask), mask)
