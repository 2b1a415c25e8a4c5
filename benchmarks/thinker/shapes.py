"""The thinker's released shape as `config.json` of two model classes.

`plug-in` is this project's model; `stock` is SGLang's own text-only BailingMoeV2 at the same shape.
"""

import argparse
import json
from pathlib import Path
from typing import Any

import torch
from safetensors.torch import save_file

from benchmarks.synthetic.random_models.names import PLUG_IN, STOCK, STOCK_TYPE
from sglang_omni.models.base import HeadForm
from sglang_omni.models.ming.thinker.fp8_layout import build_fp8_config
from sglang_omni.models.ming.thinker.hf_config import MODEL_TYPE
from sglang_omni.models.ming.thinker.int4.layout import GROUP, build_int4_config
from sglang_omni.models.ming.tiny.configs import build_thinker_token_ids
from sglang_omni.models.ming.tiny.tokenizers import build_thinker_tokenizer
from sglang_omni.models.ming.tiny.write import write_thinker_tokenizer

Json = dict[str, Any]

SHAPE: Json = {
    "vocab_size": 157_184,
    "hidden_size": 4096,
    "num_hidden_layers": 32,
    "first_k_dense_replace": 1,
    "intermediate_size": 9216,
    "moe_intermediate_size": 1024,
    "num_attention_heads": 32,
    "num_key_value_heads": 4,
    "head_dim": 128,
    "num_experts": 256,
    "num_experts_per_tok": 8,
    "n_group": 8,
    "topk_group": 4,
}
# A shape that any machine can run, to try a benchmark.
SMALL: Json = SHAPE | {
    "vocab_size": 2048,
    "hidden_size": 128,
    "num_hidden_layers": 3,
    "intermediate_size": 256,
    "moe_intermediate_size": 128,
    "num_attention_heads": 4,
    "num_key_value_heads": 2,
    "num_experts": 16,
    "num_experts_per_tok": 4,
}
CONSTANTS: Json = {
    "hidden_act": "silu",
    "rms_norm_eps": 1e-6,
    "rope_theta": 2_400_000,
    "partial_rotary_factor": 0.5,
    "max_position_embeddings": 32_768,
    "num_shared_experts": 1,
    "norm_topk_prob": True,
    "routed_scaling_factor": 2.5,
    "use_qk_norm": True,
    "use_qkv_bias": False,
    "use_bias": False,
    "tie_word_embeddings": False,
    "torch_dtype": "bfloat16",
}
# What SGLang's own class needs besides.
STOCK_CONSTANTS: Json = {
    "score_function": "sigmoid",
    "moe_router_enable_expert_bias": True,
    "embedding_dropout": 0.0,
    "norm_head": False,
}
# SGLang's own FP8, which leaves the head in bfloat16.
STOCK_FP8: Json = build_fp8_config(fp8_head=False)
# Experts in four bits for SGLang's Triton kernels (`moe_wna16`), symmetric as ours are. The rest is
# in bfloat16: SGLang's kernels for other layers take float16 alone.
STOCK_INT4: Json = {
    "quant_method": "awq",
    "version": "gemm",
    "bits": 4,
    "group_size": GROUP,
    "zero_point": False,
    "modules_to_not_convert": ["attention", "shared_experts", "layers.0.mlp"],
}
STOCK_INT4_METHOD = "moe_wna16"
WEIGHTS = ("bf16", "fp8", "int4")
"""The precisions of weights."""


def build_config(system: str, shape: Json, weights: str, head: HeadForm = HeadForm.FP8) -> Json:
    """Return `config.json` for a model ("plug-in" or "stock") with weights of one of `WEIGHTS`.

    `head` is the form of the plug-in's head where its weights are quantized; stock's is always in
    bfloat16.
    """
    tokens = build_thinker_token_ids(build_thinker_tokenizer())
    text = tokens | shape | CONSTANTS
    quantised = _build_quantization(system, weights, fp8_head=head is HeadForm.FP8)
    if system == "stock":
        names = {"architectures": [STOCK], "model_type": STOCK_TYPE}
        return names | text | STOCK_CONSTANTS | quantised
    return {
        "architectures": [PLUG_IN],
        "model_type": MODEL_TYPE,
        "torch_dtype": "bfloat16",
        "llm_config": text,
    } | quantised


def _build_quantization(system: str, weights: str, fp8_head: bool) -> Json:
    if weights == "bf16":
        return {}
    is_stock = system == "stock"
    if weights == "fp8":
        return {"quantization_config": STOCK_FP8 if is_stock else build_fp8_config(fp8_head)}
    assert weights == "int4"
    ours = build_int4_config(symmetric=True, fp8_head=fp8_head)
    return {"quantization_config": STOCK_INT4 if is_stock else ours}


def write_shape_checkpoint(
    folder: Path, system: str, shape: Json, weights: str, head: HeadForm = HeadForm.FP8
) -> None:
    """Write a checkpoint folder for SGLang whose weights are drawn as it loads."""
    config = build_config(system, shape, weights, head)
    (folder / "config.json").write_text(json.dumps(config, indent=1) + "\n", encoding="utf-8")
    write_thinker_tokenizer(folder, build_thinker_tokenizer())
    # SGLang looks for a weight file before the model loads.
    save_file({"drawn": torch.zeros(1)}, folder / "model.safetensors")


def add_weights_options(parser: argparse.ArgumentParser) -> None:
    """Add the options that choose one of `WEIGHTS`, bfloat16 without any, and the head's form."""
    choice = parser.add_mutually_exclusive_group()
    choice.set_defaults(weights="bf16")
    for weights, what in (
        ("fp8", "weights in blocks of FP8"),
        ("int4", "experts in four bits, the rest in FP8"),
    ):
        choice.add_argument(
            f"--{weights}", dest="weights", action="store_const", const=weights, help=what
        )
    parser.add_argument(
        "--head",
        type=HeadForm,
        choices=list(HeadForm),
        default=HeadForm.FP8,
        help="the output head of the plug-in's quantized weights (default fp8)",
    )
