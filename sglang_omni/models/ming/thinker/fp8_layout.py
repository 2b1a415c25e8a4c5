"""FP8 layout of the thinker: which tensors are quantized, their blocks and their names. No torch.

A matrix is split into blocks of 128 x 128. Each block has one float32 scale; its values are
stored as float8_e4m3fn. The matrices of attention, experts and dense layers are quantized.
Routers, norms, embeddings, the head and everything outside the thinker's layers keep their dtype.
Names and layout are those that SGLang's `fp8` method with `weight_block_size` reads.
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

_LAYERS = "model.model.layers."
_MATRICES = (
    ".attention.query_key_value.weight",
    ".attention.dense.weight",
    ".gate_proj.weight",
    ".up_proj.weight",
    ".down_proj.weight",
)


def is_quantized(name: str) -> bool:
    """Whether FP8 checkpoints store the tensor `name` in FP8."""
    return name.startswith(_LAYERS) and name.endswith(_MATRICES)


def add_scales(shapes: Mapping[str, tuple[int, ...]]) -> dict[str, tuple[int, ...]]:
    """Return the tensor shapes of an FP8 checkpoint from those of its bfloat16 original."""
    scales = {
        name + SCALE_SUFFIX: tuple(-(-size // BLOCK) for size in shape)
        for name, shape in shapes.items()
        if is_quantized(name)
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
