"""Read `quantization_config` of checkpoints in published four-bit layouts. No torch."""

from collections.abc import Callable, Mapping
from typing import Any

from sglang_omni.models.ming.thinker.int4.layout import GROUP, METHOD, PublishedLayout
from sglang_omni.protocol.errors import CheckpointError

Json = Mapping[str, Any]


def rewrite_quantization(config: Json | None, dtype: str | None) -> Json | None:
    """Return a `quantization_config` under the name of this project's method.

    SGLang selects a method by that name. Configurations of other forms are returned as they are.

    Args:
        config: `quantization_config` of a `config.json`.
        dtype: Its `torch_dtype`.

    Raises:
        CheckpointError: The layout is known, but not in the variant of this checkpoint.
    """
    read = _READERS.get(str((config or {}).get("quant_method")))
    if config is None or read is None:
        return config
    layout = read(config, dtype or "bfloat16")
    return {"quant_method": METHOD, **vars(layout)}


def _require(layout: str, given: Json, expected: Json) -> None:
    """Raise `CheckpointError` naming the first setting that has another value."""
    for key, value in expected.items():
        if given.get(key) != value:
            raise CheckpointError(
                f"the checkpoint is in {layout} with {key}={given.get(key)!r}; "
                f"only {key}={value!r} is supported"
            )


def _read_compressed_tensors(config: Json, dtype: str) -> PublishedLayout:
    name, groups = "compressed-tensors", list((config.get("config_groups") or {}).values())
    _require(name, config, {"format": "pack-quantized"})
    if len(groups) != 1:
        raise CheckpointError(f"the checkpoint is in {name} with {len(groups)} groups, not one")
    weights = groups[0].get("weights") or {}
    expected = {"num_bits": 4, "type": "int", "strategy": "group", "group_size": GROUP}
    _require(name, weights, expected)
    _require(name, groups[0], {"input_activations": None})
    # `static` and `weight` leave the columns in order.
    if weights.get("actorder") not in (None, False, "static", "weight"):
        raise CheckpointError(
            f"the checkpoint is in {name} with actorder={weights['actorder']!r}; columns in "
            "another order (act-order) are not supported"
        )
    return PublishedLayout(name, bool(weights.get("symmetric", True)), dtype)


def _read_awq(config: Json, _: str) -> PublishedLayout:
    version = str(config.get("version", "gemm")).lower()
    given = {**config, "version": version}
    expected = {"bits": 4, "group_size": GROUP, "zero_point": True, "version": "gemm"}
    _require("awq", given, expected)
    return PublishedLayout("awq", symmetric=False, scale_dtype="float16")


def _read_gptq(config: Json, _: str) -> PublishedLayout:
    _require("gptq", config, {"bits": 4, "group_size": GROUP})
    if config.get("desc_act"):
        raise CheckpointError(
            "the checkpoint is in gptq with desc_act; columns in another order (act-order) are not "
            "supported"
        )
    stored = config.get("checkpoint_format") or "gptq"
    if stored not in ("gptq", "gptq_v2"):
        raise CheckpointError(f"the checkpoint is in gptq with checkpoint_format={stored!r}")
    # The first version stores zeros less one.
    offset = 1 if stored == "gptq" else 0
    return PublishedLayout("gptq", bool(config.get("sym")), "float16", offset)


_READERS: Mapping[str, Callable[[Json, str], PublishedLayout]] = {
    "compressed-tensors": _read_compressed_tensors,
    "awq": _read_awq,
    "gptq": _read_gptq,
}
