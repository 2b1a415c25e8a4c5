"""The thinker in eight bits: which tensors, in which blocks, and under which names.

A matrix is cut into blocks of 128 x 128; each has one float32 scale, and its values are stored as
float8_e4m3fn. Matrices of attention, of experts and of dense layers are quantised. Routers, norms,
embeddings, the head and everything outside the thinker's layers keep their dtype. Names and layout
are those that SGLang's `fp8` method with `weight_block_size` reads. No torch.
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


def is_quantised(name: str) -> bool:
    """Whether FP8 checkpoints store the tensor `name` in eight bits."""
    return name.startswith(_LAYERS) and name.endswith(_MATRICES)


def with_scales(shapes: Mapping[str, tuple[int, ...]]) -> dict[str, tuple[int, ...]]:
    """Names and shapes of an FP8 checkpoint from those of the same checkpoint in bfloat16."""
    scales = {
        name + SCALE_SUFFIX: tuple(-(-size // BLOCK) for size in shape)
        for name, shape in shapes.items()
        if is_quantised(name)
    }
    return {**shapes, **scales}


def block_fp8(config: Mapping[str, Any] | None) -> bool:
    """Whether `quantization_config` of a `config.json` means this layout; False without one.

    Raises `CheckpointError` for any other quantisation.
    """
    if config is None:
        return False
    wanted = {key: QUANTIZATION_CONFIG[key] for key in ("quant_method", "weight_block_size")}
    if {key: config.get(key) for key in wanted} != wanted:
        raise CheckpointError(
            f"the checkpoint is quantised as {dict(config)}; only FP8 in blocks of "
            f"{BLOCK} x {BLOCK} is supported, as `sgl-omni quantize` writes it"
        )
    return True
