"""The thinker's tensors: every name and shape that a checkpoint must hold."""

from collections.abc import Iterator
from typing import Any

from sglang_omni.models.ming.encoders.tensors import encoder_name
from sglang_omni.models.ming.thinker.routing import ROUTERS

Shapes = Iterator[tuple[str, tuple[int, ...]]]


def is_encoder_tensor(name: str) -> bool:
    """Whether a tensor belongs to an encoder, which share the file with the thinker."""
    return encoder_name(name) is not None


def thinker_tensors(config: Any) -> dict[str, tuple[int, ...]]:
    """Names and shapes for a text configuration, in the checkpoint's naming."""
    hidden, vocab = config.hidden_size, config.vocab_size
    shapes: dict[str, tuple[int, ...]] = {
        "model.model.word_embeddings.weight": (vocab, hidden),
        "model.model.norm.weight": (hidden,),
        "model.lm_head.weight": (vocab, hidden),
    }
    for layer in range(config.num_hidden_layers):
        prefix = f"model.model.layers.{layer}."
        shapes |= {prefix + name: shape for name, shape in _layer(config, layer)}
    return shapes


def _layer(config: Any, layer: int) -> Shapes:
    hidden, head = config.hidden_size, config.head_dim
    queries, keys = config.num_attention_heads, config.num_key_value_heads
    yield "input_layernorm.weight", (hidden,)
    yield "post_attention_layernorm.weight", (hidden,)
    yield "attention.query_key_value.weight", ((queries + 2 * keys) * head, hidden)
    yield "attention.dense.weight", (hidden, queries * head)
    yield "attention.q_norm.weight", (head,)
    yield "attention.k_norm.weight", (head,)
    if layer < config.first_k_dense_replace:
        yield from _mlp("mlp.", hidden, _stored(config, "intermediate_size"))
    else:
        yield from _experts(config)


def _experts(config: Any) -> Shapes:
    hidden, width = config.hidden_size, _stored(config, "moe_intermediate_size")
    for router in ROUTERS:
        yield f"mlp.{router}.weight", (config.num_experts, hidden)
        yield f"mlp.{router}.expert_bias", (config.num_experts,)
    for expert in range(config.num_experts):
        yield from _mlp(f"mlp.experts.{expert}.", hidden, width)
    yield from _mlp("mlp.shared_experts.", hidden, width * config.num_shared_experts)


def _mlp(prefix: str, hidden: int, width: int) -> Shapes:
    yield prefix + "gate_proj.weight", (width, hidden)
    yield prefix + "up_proj.weight", (width, hidden)
    yield prefix + "down_proj.weight", (hidden, width)


def _stored(config: Any, width: str) -> int:
    """A width as the checkpoint stores it: on a CPU, SGLang pads some and keeps the original."""
    return getattr(config, f"original_{width}", getattr(config, width))
