"""Sampling parameters in other forms: the peers' lists by stage, and other programs' names."""

from collections.abc import Mapping
from typing import Any

from sglang_omni.protocol.compat.conversions import join_names, make_error
from sglang_omni.protocol.compat.field_rules import Change, Fields
from sglang_omni.protocol.sampling import SamplingParams

THINKER = "thinker"
SHARED_NAMES = (
    *("temperature", "top_p", "top_k", "min_p", "repetition_penalty", "max_tokens"),
    *("frequency_penalty", "presence_penalty", "stop", "seed"),
)


def convert_params_list(value: Any, fields: Fields) -> Change:
    """Convert vllm-omni's list, an object for each stage: the first is the thinker's."""
    if not isinstance(value, list) or not all(isinstance(one, Mapping) for one in value):
        raise make_error("sampling_params_list", "must be a list of JSON objects")
    thinker, *others = value or [{}]
    change = _take_known(thinker, fields, "sampling_params_list")
    ignored = ("sampling_params_list",) if any(others) else ()
    return Change(change.fields, tuple(dict.fromkeys((*change.ignored, *ignored))))


def convert_stage_params(name: str, value: Any, fields: Fields) -> Change:
    """Convert sglang-omni's objects by the name of a stage: the thinker's are taken."""
    if not isinstance(value, Mapping) or not all(map(_is_object, value.values())):
        raise make_error(name, "must be a JSON object with an object for each stage")
    others = {stage: params for stage, params in value.items() if stage != THINKER and params}
    change = _take_known(value.get(THINKER) or {}, fields, name)
    return Change(change.fields, (*change.ignored, *join_names(name, others)))


def convert_stage_sampling(value: Any, fields: Fields) -> Change:
    """Convert `stage_sampling`."""
    return convert_stage_params("stage_sampling", value, fields)


def convert_chat_stage_params(value: Any, fields: Fields) -> Change:
    """Convert `stage_params` of a chat."""
    return convert_stage_params("stage_params", value, fields)


def _is_object(value: Any) -> bool:
    return value is None or isinstance(value, Mapping)


def _take_known(params: Mapping[str, Any], fields: Fields, parent: str) -> Change:
    """Take the parameters that a chat has, unless its own fields set them."""
    given = {name: value for name, value in params.items() if value is not None}
    known = {name: value for name, value in given.items() if name in SHARED_NAMES}
    unknown = {name: value for name, value in given.items() if name not in SHARED_NAMES}
    taken = {
        name: value
        for name, value in known.items()
        if fields.get(name) is None and not _means_unlimited(name, value)
    }
    return Change(taken, join_names(parent, unknown))


def _means_unlimited(name: str, value: Any) -> bool:
    """Return whether a value of a preset means that there is no limit."""
    if name == "max_tokens":
        return isinstance(value, int) and value > SamplingParams.max_tokens
    return name == "top_k" and value == 0
