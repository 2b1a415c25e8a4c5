"""Names and shapes of all thinker tensors of a checkpoint."""

from collections.abc import Iterator
from typing import Any

from sglang_omni.models.ming.encoders.tensors import strip_encoder_prefix
from sglang_omni.models.ming.thinker.routing import ROUTERS

Shapes = Iterator[tuple[str, tuple[int, ...]]]


def is_encoder_tensor(name: str) -> bool:
    """Whether a tensor belongs to an encoder; encoders share files with the thinker."""
    return strip_encoder_prefix(name) is not None


def list_thinker_tensors(config: Any) -> dict[str, tuple[int, ...]]:
    """Return the shapes of all tensors by checkpoint name, for a text configuration."""
    hidden, vocab = config.hidden_size, config.vocab_size
    shapes: dict[str, tuple[int, ...]] = {
        "model.model.word_embeddings.weight": (vocab, hidden),
        "model.model.norm.weight": (hidden,),
        "model.lm_head.weight": (vocab, hidden),
    }
    for layer in range(config.num_hidden_layers):
        prefix = f"model.model.layers.{layer}."
        shapes |= {prefix + name: shape for name, shape in _list_layer(config, layer)}
    return shapes


def _list_layer(config: Any, layer: int) -> Shapes:
    hidden, head_dim = config.hidden_size, config.head_dim
    num_heads, num_kv_heads = config.num_attention_heads, config.num_key_value_heads
    yield "input_layernorm.weight", (hidden,)
    yield "post_attention_layernorm.weight", (hidden,)
    yield "attention.query_key_value.weight", ((num_heads + 2 * num_kv_heads) * head_dim, hidden)
    yield "attention.dense.weight", (hidden, num_heads * head_dim)
    yield "attention.q_norm.weight", (head_dim,)
    yield "attention.k_norm.weight", (head_dim,)
    if layer < config.first_k_dense_replace:
        yield from _list_mlp("mlp.", hidden, _stored_width(config, "intermediate_size"))
    else:
        yield from _list_experts(config)


def _list_experts(config: Any) -> Shapes:
    hidden, width = config.hidden_size, _stored_width(config, "moe_intermediate_size")
    for router in ROUTERS:
        yield f"mlp.{router}.weight", (config.num_experts, hidden)
        yield f"mlp.{router}.expert_bias", (config.num_experts,)
    for expert in range(config.num_experts):
        yield from _list_mlp(f"mlp.experts.{expert}.", hidden, width)
    yield from _list_mlp("mlp.shared_experts.", hidden, width * config.num_shared_experts)


def _list_mlp(prefix: str, hidden: int, width: int) -> Shapes:
    yield prefix + "gate_proj.weight", (width, hidden)
    yield prefix + "up_proj.weight", (width, hidden)
    yield prefix + "down_proj.weight", (hidden, width)


def _stored_width(config: Any, width: str) -> int:
    """Return a width as stored: on a CPU, SGLang pads widths and keeps the original ones."""
    return getattr(config, f"original_{width}", getattr(config, width))
