"""Four-bit layout of the thinker's experts: sizes, tensors and their names. No torch.

The matrices of routed and shared experts are in four bits, in groups of 128 input columns
(`int4.weights` has the format). What FP8 checkpoints store in FP8 besides, attention, dense layers
and the head where `quantization_config` says so, is stored as there. Routers, norms, embeddings and
everything else outside the thinker's layers keep their dtype.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from sglang_omni.models.ming.thinker import fp8_layout
from sglang_omni.protocol.errors import CheckpointError

METHOD = "ming_int4"
"""The quantization method, under which SGLang finds it too."""
GROUP = 128
"""Input columns that share a scale."""
TILE_ROWS = 64
"""Output rows of a contiguous tile."""
VALUES_PER_WORD = 4
WORDS = GROUP // VALUES_PER_WORD
"""Words of one row of a group."""
MAX_VALUE = 15
SYMMETRIC_ZERO = 8
PACKED, SCALE, ZERO = "packed", "scale", "zero"
"""What a checkpoint stores instead of an expert's `weight`."""

_PUBLISHED_TENSORS = (
    "qweight",
    "qzeros",
    "scales",
    "weight_packed",
    "weight_scale",
    "weight_zero_point",
)
_EXPERTS = (".mlp.experts.", ".mlp.shared_experts.")


@dataclass(frozen=True)
class Int4Format:
    """What a checkpoint in four bits leaves open.

    Attributes:
        symmetric: Whether every zero is 8, so that none is stored.
        scale_dtype: "bfloat16" or "float16".
        fp8_rest: Whether attention and dense layers are in FP8; otherwise they keep their dtype.
    """

    symmetric: bool = True
    scale_dtype: str = "bfloat16"
    fp8_rest: bool = True


@dataclass(frozen=True)
class PublishedLayout:
    """A published four-bit layout of experts, as far as `int4.published` reads it.

    Attributes:
        name: "compressed-tensors", "awq" or "gptq".
        symmetric: Whether every zero is 8.
        scale_dtype: "bfloat16" or "float16".
        zero_offset: What is added to stored zeros.
    """

    name: str
    symmetric: bool
    scale_dtype: str
    zero_offset: int = 0


def read_published_layout(config: Mapping[str, Any]) -> PublishedLayout | None:
    """Return the published layout that a rewritten `quantization_config` names, if it names one."""
    if "name" not in config:
        return None
    return PublishedLayout(**{key: config[key] for key in PublishedLayout.__dataclass_fields__})


def read_int4_format(config: Mapping[str, Any]) -> Int4Format:
    """Return the format that a `quantization_config` of this method names."""
    published = read_published_layout(config)
    if published is not None:
        return Int4Format(published.symmetric, published.scale_dtype, fp8_rest=False)
    return Int4Format(symmetric=bool(config["symmetric"]))


def build_int4_config(symmetric: bool, fp8_head: bool = False) -> dict[str, Any]:
    """Return the `quantization_config` of a checkpoint that `sgl-omni quantize` writes."""
    experts = {
        "quant_method": METHOD,
        "bits": 4,
        "group_size": GROUP,
        "symmetric": symmetric,
        # Not "weight_block_size": for that key SGLang checks the width of experts as of FP8.
        "fp8_block_size": [fp8_layout.BLOCK, fp8_layout.BLOCK],
    }
    return fp8_layout.declare_head(experts, fp8_head)


def is_int4(config: Mapping[str, Any] | None) -> bool:
    """Whether `quantization_config` of a `config.json` selects this layout; False for None.

    Raises:
        CheckpointError: It has other sizes.
    """
    if config is None or config.get("quant_method") != METHOD:
        return False
    if read_published_layout(config) is not None:
        return True
    expected = build_int4_config(bool(config.get("symmetric")))
    if any(config.get(key) != value for key, value in expected.items()):
        raise CheckpointError(
            f"the checkpoint is quantized as {dict(config)}; four bits need {expected}"
        )
    return True


def is_expert_matrix(name: str) -> bool:
    """Whether four-bit checkpoints store the tensor `name` in four bits."""
    return fp8_layout.is_quantized(name) and any(part in name for part in _EXPERTS)


def is_int4_tensor(name: str) -> bool:
    """Whether `name` is a tensor that stands for an expert's matrix, in any layout."""
    stem, _, part = name.rpartition(".")
    return part in (PACKED, SCALE, ZERO, *_PUBLISHED_TENSORS) and is_expert_matrix(f"{stem}.weight")


def strip_weight(name: str) -> str:
    """Return the prefix that an expert's stored tensors share, of the name of its weight."""
    return name.removesuffix("weight")


def pad_expert_width(width: int) -> int:
    """Return an expert's width as stored: with zeros up to a multiple of a group."""
    return -(-width // GROUP) * GROUP


def pad_expert_shape(name: str, shape: tuple[int, ...]) -> tuple[int, int]:
    """Return the stored sizes of an expert's matrix [rows, columns].

    The width of an expert is the rows of gate and up and the columns of down.
    """
    rows, columns = shape
    if name.endswith(".down_proj.weight"):
        return rows, pad_expert_width(columns)
    return pad_expert_width(rows), columns


def list_int4_tensors(
    shapes: Mapping[str, tuple[int, ...]], symmetric: bool, fp8_head: bool = False
) -> dict[str, tuple[int, ...]]:
    """Return the tensor shapes of a four-bit checkpoint from those of its bfloat16 original."""
    experts = {name: shape for name, shape in shapes.items() if is_expert_matrix(name)}
    rest = {name: shape for name, shape in shapes.items() if name not in experts}
    stored = fp8_layout.add_scales(rest, fp8_head)
    for name, shape in experts.items():
        rows, columns = pad_expert_shape(name, shape)
        check_int4_shape((rows, columns))
        tiled = rows // TILE_ROWS, columns // GROUP, TILE_ROWS
        stored[strip_weight(name) + PACKED] = *tiled, WORDS
        stored[strip_weight(name) + SCALE] = tiled
        if not symmetric:
            stored[strip_weight(name) + ZERO] = tiled
    return stored


def check_int4_shape(shape: tuple[int, ...]) -> None:
    """Raise `CheckpointError` if a matrix [rows, columns] cannot be stored in four bits."""
    if len(shape) != 2 or shape[0] % TILE_ROWS or shape[1] % GROUP:
        raise CheckpointError(
            f"a matrix of shape {list(shape)} cannot be quantized to four bits; its rows must be "
            f"a multiple of {TILE_ROWS} and its columns of {GROUP}"
        )
