"""The bytes of weights that a decode step reads, and the fewest milliseconds that this takes.

Every step reads the weights of all layers but those of unused experts, and the head. What it reads
of the KV cache comes on top, and so do activations; both are small for short prompts.
"""

from collections.abc import Mapping, Sequence
from typing import Any

from sglang_omni.models.base import HeadForm
from sglang_omni.models.ming.thinker.fp8_layout import BLOCK
from sglang_omni.models.ming.thinker.int4.layout import GROUP

# Of memory, in bytes per second, as NVIDIA's data sheets give them.
BANDWIDTH = {"NVIDIA H100 80GB HBM3": 3.35e12, "NVIDIA H200": 4.8e12}
# Bytes of a weight, with its part of a scale.
BF16, FP8, INT4 = 2.0, 1 + 4 / BLOCK**2, 0.5 + 2 / GROUP
# Of routed experts, shared experts and other matrices, by model and precision.
BYTES: Mapping[tuple[str, str], tuple[float, float, float]] = {
    ("plug-in", "bf16"): (BF16, BF16, BF16),
    ("stock", "bf16"): (BF16, BF16, BF16),
    ("plug-in", "fp8"): (FP8, FP8, FP8),
    ("stock", "fp8"): (FP8, FP8, FP8),
    ("plug-in", "int4"): (INT4, INT4, FP8),
    ("stock", "int4"): (INT4, BF16, BF16),
}


def step_bytes(
    model: str,
    shape: Mapping[str, Any],
    weights: str,
    experts_used: Sequence[int],
    head: HeadForm = HeadForm.FP8,
) -> float:
    """Return the bytes of weights that a decode step reads.

    Args:
        model: "plug-in" or "stock".
        shape: The shape of the thinker (`benchmarks.thinker.shapes.SHAPE`).
        weights: One of `benchmarks.thinker.shapes.WEIGHTS`.
        experts_used: The routed experts that the step uses, by sparse layer.
        head: The form of the plug-in's head where its weights are quantized.
    """
    routed, shared, other = BYTES[model, weights]
    hidden, heads = shape["hidden_size"], shape["num_attention_heads"]
    heads_stored = 2 * heads + 2 * shape["num_key_value_heads"]
    attention = hidden * shape["head_dim"] * heads_stored
    dense_layers = shape["first_k_dense_replace"]
    dense = 3 * hidden * shape["intermediate_size"]
    expert = 3 * hidden * shape["moe_intermediate_size"]
    router = hidden * shape["num_experts"] * BF16
    total = other * (attention * shape["num_hidden_layers"] + dense * dense_layers)
    total += sum(expert * (routed * used + shared) + router for used in experts_used)
    in_fp8 = model == "plug-in" and weights != "bf16" and head is HeadForm.FP8
    return total + hidden * shape["vocab_size"] * (FP8 if in_fp8 else BF16)


def shortest_step_ms(gpu_name: str, num_bytes: float, gpus: int = 1) -> float | None:
    """Return the milliseconds that GPUs of this name need to read so much; None if not known."""
    bandwidth = BANDWIDTH.get(gpu_name)
    return None if bandwidth is None else 1e3 * num_bytes / bandwidth / gpus
