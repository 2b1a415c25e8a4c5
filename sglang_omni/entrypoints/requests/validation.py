"""Conversion of pydantic's problems to errors that name the field of the request."""

from collections.abc import Sequence
from typing import Any

from sglang_omni.protocol.compat.field_rules import FieldRules
from sglang_omni.protocol.compat.similar_names import find_similar_field
from sglang_omni.protocol.errors import SCHEMA_REFUSED, InvalidRequest
from sglang_omni.protocol.responses import TOOL_TAGS
from sglang_omni.protocol.speech import INPUT_TAGS

VALIDATION_CODES = {
    "missing": "missing_required_parameter",
    "extra_forbidden": "unknown_parameter",
    "json_invalid": "invalid_json",
}
# Where a body has one of several types: pydantic puts the type behind the path.
_INDEX = "*"
_UNIONS = frozenset(
    {
        ("messages", _INDEX, "content", _INDEX),
        ("input", _INDEX),
        ("input", _INDEX, "content", _INDEX),
        ("response_format",),
        ("text", "format"),
        ("tool_choice",),
        ("tool_choice", "tools", _INDEX),
    }
)
# Validation problems that have their own reason in metrics and the audit log.
VALIDATION_REASONS = {"json_schema": SCHEMA_REFUSED}


def to_invalid_request(problems: Sequence[Any], rules: FieldRules | None = None) -> InvalidRequest:
    """Return the first of pydantic's problems as an error that names a path such as `stop.0`.

    With the `rules` of the body's fields, an error about an unknown one names the most similar.
    """
    problem = problems[0]
    if problem["type"] == "json_invalid":
        # The location of invalid JSON is an offset into the body, not a field.
        path, reason = "", f"the body is not valid JSON: {problem['ctx']['error']}"
    else:
        steps = _find_field_path(problem)
        path, reason = ".".join(map(str, steps)), _describe_problem(problem)
        if problem["type"] == "extra_forbidden" and rules is not None:
            similar = find_similar_field(rules, steps)
            reason += f"; did you mean {similar!r}?" if similar else ""
    error = InvalidRequest(f"{path}: {reason}" if path else reason, param=path or None)
    error.code = VALIDATION_CODES.get(problem["type"], InvalidRequest.code)
    error.reason = VALIDATION_REASONS.get(problem["type"])
    return error


def _describe_problem(problem: Any) -> str:
    """Return what is wrong. Some of pydantic's messages name Python types and are replaced."""
    is_body = len(problem["loc"]) == 1
    match problem["type"]:
        case "extra_forbidden":
            return "unknown field"
        case "missing" if is_body:
            return "the body is empty; send a JSON object"
        case "model_type" | "model_attributes_type" | "dict_type":
            return "the body must be a JSON object" if is_body else "must be a JSON object"
    return str(problem["msg"])


def _find_field_path(problem: Any) -> list[int | str]:
    """Return the location of a problem in the body.

    In a discriminated union, pydantic puts the type before the field; it is removed here.
    """
    location = [step for step in problem["loc"][1:] if step not in TOOL_TAGS]
    path = [step for step in location if step not in INPUT_TAGS]
    if len(path) == len(location):
        # No turns of speech, which have no type behind their index.
        path = _drop_union_types(location)
    return [*path, "type"] if problem["type"].startswith("union_tag") else path


def _drop_union_types(location: Sequence[int | str]) -> list[int | str]:
    """Return a location without the types that follow the values of `_UNIONS`."""
    path: list[int | str] = []
    steps = iter(location)
    for step in steps:
        path.append(step)
        if tuple(_INDEX if isinstance(one, int) else one for one in path) in _UNIONS:
            next(steps, None)
    return path
