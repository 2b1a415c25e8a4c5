"""The thinker in plain PyTorch: short, differentiable, one sequence at a time.

Modules and parameters have the checkpoint's tensor names. Parity tests and training use it;
serving does not.
"""

from pathlib import Path
from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from sglang_omni.models.ming.speech.qwen2 import RMSNorm
from sglang_omni.models.ming.thinker.rope import (
    apply_rotary,
    assign_frequency_axes,
    compute_inverse_frequencies,
    compute_rotary_tables,
)
from sglang_omni.models.ming.thinker.routing import Routing, select_experts, select_router
from sglang_omni.models.ming.thinker.tensors import is_encoder_tensor
from sglang_omni.models.weights import TensorFolder, load_strict

LayerCache = list[tuple[Tensor, Tensor]]


class ReferenceMLP(nn.Module):
    """SwiGLU without biases."""

    def __init__(self, hidden: int, width: int) -> None:
        super().__init__()
        self.gate_proj = nn.Linear(hidden, width, bias=False)
        self.up_proj = nn.Linear(hidden, width, bias=False)
        self.down_proj = nn.Linear(width, hidden, bias=False)

    def forward(self, x: Tensor) -> Tensor:
        """Return [..., hidden] of x [..., hidden]."""
        return self.down_proj(F.silu(self.gate_proj(x)) * self.up_proj(x))


class ReferenceRouter(nn.Module):
    """Weight of one router, and its bias, which affects only the selection."""

    def __init__(self, experts: int, hidden: int) -> None:
        super().__init__()
        self.weight = nn.Parameter(torch.empty(experts, hidden))
        self.expert_bias = nn.Parameter(torch.zeros(experts))


class ReferenceSparseMLP(nn.Module):
    """Routed experts plus one ungated shared expert."""

    def __init__(self, config: Any) -> None:
        super().__init__()
        hidden, width = config.hidden_size, config.moe_intermediate_size
        self.routing = Routing.from_config(config)
        self.gate = ReferenceRouter(config.num_experts, hidden)
        self.image_gate = ReferenceRouter(config.num_experts, hidden)
        self.audio_gate = ReferenceRouter(config.num_experts, hidden)
        self.experts = nn.ModuleList(ReferenceMLP(hidden, width) for _ in range(config.num_experts))
        self.shared_experts = ReferenceMLP(hidden, width * config.num_shared_experts)

    def forward(self, x: Tensor, routes: Tensor) -> Tensor:
        """Return [tokens, hidden] of x; `routes` [tokens] select the router of each token."""
        weights, ids = self.select_experts(x, routes)
        combined = torch.zeros_like(x, dtype=weights.dtype)
        for index in ids.unique().tolist():
            token, slot = (ids == index).nonzero(as_tuple=True)
            output = self.experts[index](x[token]) * weights[token, slot, None]
            combined = combined.index_add(0, token, output)
        return combined.to(x.dtype) + self.shared_experts(x)

    def select_experts(self, x: Tensor, routes: Tensor) -> tuple[Tensor, Tensor]:
        """Return combine weights and expert ids, both [tokens, top_k], for x [tokens, hidden]."""
        routers = self.gate, self.image_gate, self.audio_gate
        logits = torch.stack([F.linear(x, router.weight) for router in routers], dim=1)
        bias = torch.stack([router.expert_bias for router in routers])
        return select_experts(*select_router(logits, bias, routes), self.routing)


class ReferenceAttention(nn.Module):
    """Grouped-query attention with QK-norm before the partial rotary embedding."""

    def __init__(self, config: Any) -> None:
        super().__init__()
        self.head_dim = config.head_dim
        self.heads = config.num_attention_heads, config.num_key_value_heads
        total = (self.heads[0] + 2 * self.heads[1]) * self.head_dim
        self.query_key_value = nn.Linear(config.hidden_size, total, bias=False)
        self.dense = nn.Linear(self.heads[0] * self.head_dim, config.hidden_size, bias=False)
        self.q_norm = RMSNorm(self.head_dim, config.rms_norm_eps)
        self.k_norm = RMSNorm(self.head_dim, config.rms_norm_eps)

    def forward(self, x: Tensor, tables: tuple[Tensor, Tensor], cache: LayerCache) -> Tensor:
        """Attend over x and `cache`, this layer's earlier k and v, which is extended in place."""
        qkv = self.query_key_value(x).unflatten(-1, (-1, self.head_dim))
        q, k, v = qkv.split([self.heads[0], self.heads[1], self.heads[1]], dim=1)
        q, k = apply_rotary(self.q_norm(q), *tables), apply_rotary(self.k_norm(k), *tables)
        cache.append((k, v))
        k, v = (torch.cat(part).transpose(0, 1) for part in zip(*cache, strict=True))
        past = k.shape[1] - x.shape[0]
        mask = torch.ones(x.shape[0], k.shape[1], dtype=torch.bool, device=x.device).tril(past)
        out = F.scaled_dot_product_attention(
            q.transpose(0, 1)[None], k[None], v[None], attn_mask=mask, enable_gqa=True
        )
        return self.dense(out[0].transpose(0, 1).flatten(1))


class ReferenceLayer(nn.Module):
    """One pre-norm layer, dense or sparse."""

    def __init__(self, config: Any, index: int) -> None:
        super().__init__()
        hidden, eps = config.hidden_size, config.rms_norm_eps
        self.sparse = index >= config.first_k_dense_replace
        self.input_layernorm = RMSNorm(hidden, eps)
        self.attention = ReferenceAttention(config)
        self.post_attention_layernorm = RMSNorm(hidden, eps)
        self.mlp = (
            ReferenceSparseMLP(config)
            if self.sparse
            else ReferenceMLP(hidden, config.intermediate_size)
        )

    def forward(
        self, x: Tensor, tables: tuple[Tensor, Tensor], routes: Tensor, cache: LayerCache
    ) -> Tensor:
        """Return [tokens, hidden] of x [tokens, hidden].

        Args:
            x: The tokens of one sequence.
            tables: Rotary cosines and sines.
            routes: int64 [tokens], the router of each token.
            cache: The layer's keys and values, to which this pass appends.
        """
        x = x + self.attention(self.input_layernorm(x), tables, cache)
        normalized = self.post_attention_layernorm(x)
        return x + (self.mlp(normalized, routes) if self.sparse else self.mlp(normalized))


class ReferenceDecoder(nn.Module):
    """Embeddings, layers and the final norm."""

    inv_freq: Tensor
    axes: Tensor

    def __init__(self, config: Any) -> None:
        super().__init__()
        self.word_embeddings = nn.Embedding(config.vocab_size, config.hidden_size)
        self.layers = nn.ModuleList(
            ReferenceLayer(config, i) for i in range(config.num_hidden_layers)
        )
        self.norm = RMSNorm(config.hidden_size, config.rms_norm_eps)
        rope = config.rope_parameters
        frequencies = compute_inverse_frequencies(config.rotary_dim, rope["rope_theta"])
        axes = torch.tensor(assign_frequency_axes(rope["mrope_section"]))
        self.register_buffer("inv_freq", frequencies, persistent=False)
        self.register_buffer("axes", axes, persistent=False)

    def forward(
        self, x: Tensor, positions: Tensor, routes: Tensor, caches: list[LayerCache]
    ) -> Tensor:
        """Return normalised hidden states [tokens, hidden] of embeddings x [tokens, hidden].

        Args:
            x: The embeddings of one sequence.
            positions: int64 [3, tokens], in time, height and width.
            routes: int64 [tokens], the router of each token.
            caches: One per layer.
        """
        tables = compute_rotary_tables(positions, self.inv_freq, self.axes)
        for layer, cache in zip(self.layers, caches, strict=True):
            x = layer(x, tables, routes, cache)
        return self.norm(x)


class ThinkerReference(nn.Module):
    """The language model of the checkpoint, without its encoders."""

    def __init__(self, config: Any) -> None:
        super().__init__()
        self.config = config
        self.model = ReferenceDecoder(config)
        self.lm_head = nn.Linear(config.hidden_size, config.vocab_size, bias=False)

    def new_cache(self) -> list[LayerCache]:
        """Return an empty KV cache: per layer a growing list of (k, v)."""
        return [[] for _ in self.model.layers]

    def forward(
        self,
        embeddings: Tensor,
        positions: Tensor,
        routes: Tensor,
        caches: list[LayerCache] | None = None,
    ) -> Tensor:
        """Return logits [tokens, vocab] for one sequence.

        Args:
            embeddings: [tokens, hidden].
            positions: [3, tokens].
            routes: Route ids [tokens].
            caches: KV cache of earlier tokens, which these tokens continue.
        """
        hidden = self.model(embeddings, positions, routes, caches or self.new_cache())
        return self.lm_head(hidden)


def load_reference(checkpoint: Path, config: Any) -> ThinkerReference:
    """Load the thinker of a checkpoint in float32, strictly.

    Raises:
        CheckpointError: A tensor is missing, unexpected or has the wrong shape.
    """
    model = ThinkerReference(config)
    tensors = TensorFolder(checkpoint)
    load_strict(model, tensors, prefix="model.", ignore=lambda n: is_encoder_tensor("model." + n))
    return model.eval()
