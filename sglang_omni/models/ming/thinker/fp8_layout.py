"""FP8 layout of the thinker: which tensors are quantized, their blocks and their names. No torch.

A matrix is split into blocks of 128 x 128. Each block has one float32 scale; its values are
stored as float8_e4m3fn. The matrices of attention, experts and dense layers are quantized, and the
head where `quantization_config` says so. Routers, norms, embeddings and everything else outside the
thinker's layers keep their dtype. Names and layout are those that SGLang's `fp8` method with
`weight_block_size` reads.
"""

from collections.abc import Mapping
from typing import Any

from sglang_omni.protocol.errors import CheckpointError

BLOCK = 128
SCALE_SUFFIX = "_scale_inv"
QUANTIZATION_CONFIG = {
    "quant_method": "fp8",
    "fmt": "e4m3",
    "activation_scheme": "dynamic",
    "weight_block_size": [BLOCK, BLOCK],
}

HEAD = "model.lm_head.weight"
HEAD_KEY = "lm_head"
"""Key of `quantization_config` that is true where the head is quantized, as in GPTQ's."""

_LAYERS = "model.model.layers."
_MATRICES = (
    ".attention.query_key_value.weight",
    ".attention.dense.weight",
    ".gate_proj.weight",
    ".up_proj.weight",
    ".down_proj.weight",
)


def build_fp8_config(fp8_head: bool) -> dict[str, Any]:
    """Return the `quantization_config` of a checkpoint that `sgl-omni quantize --fp8` writes."""
    return declare_head(QUANTIZATION_CONFIG, fp8_head)


def declare_head(config: Mapping[str, Any], fp8_head: bool) -> dict[str, Any]:
    """Return a `quantization_config` that says how the head is stored.

    Without the key, as in checkpoints from before there was one, the head keeps its dtype.
    """
    return {**config, HEAD_KEY: True} if fp8_head else dict(config)


def has_fp8_head(config: Mapping[str, Any] | None) -> bool:
    """Whether `quantization_config` of a `config.json` says that the head is in FP8.

    Raises:
        CheckpointError: It says something else of the head.
    """
    value = (config or {}).get(HEAD_KEY, False)
    if not isinstance(value, bool):
        raise CheckpointError(
            f"quantization_config has {HEAD_KEY}={value!r}; it must be true (the head is in FP8) "
            "or false"
        )
    return value


def is_quantized(name: str, fp8_head: bool = False) -> bool:
    """Whether FP8 checkpoints, those with the head in FP8 or the others, store a tensor in FP8."""
    if name == HEAD:
        return fp8_head
    return name.startswith(_LAYERS) and name.endswith(_MATRICES)


def add_scales(
    shapes: Mapping[str, tuple[int, ...]], fp8_head: bool = False
) -> dict[str, tuple[int, ...]]:
    """Return the tensor shapes of an FP8 checkpoint from those of its bfloat16 original."""
    scales = {
        name + SCALE_SUFFIX: tuple(-(-size // BLOCK) for size in shape)
        for name, shape in shapes.items()
        if is_quantized(name, fp8_head)
    }
    return {**shapes, **scales}


def is_block_fp8(config: Mapping[str, Any] | None) -> bool:
    """Whether `quantization_config` of a `config.json` selects this layout; False for None.

    Raises:
        CheckpointError: The checkpoint has another quantization.
    """
    if config is None:
        return False
    expected = {key: QUANTIZATION_CONFIG[key] for key in ("quant_method", "weight_block_size")}
    if {key: config.get(key) for key in expected} != expected:
        raise CheckpointError(
            f"the checkpoint is quantized as {dict(config)}; only FP8 in blocks of "
            f"{BLOCK} x {BLOCK} and experts in four bits are supported (docs/quantization.md); "
            "`sgl-omni quantize` creates both"
        )
    return True
