"""Conversion of pydantic's problems to errors that name the field of the request."""

from collections.abc import Sequence
from typing import Any

from sglang_omni.protocol.errors import SCHEMA_REFUSED, InvalidRequest

VALIDATION_CODES = {
    "missing": "missing_required_parameter",
    "extra_forbidden": "unknown_parameter",
    "json_invalid": "invalid_json",
}
# Validation problems that have their own reason in metrics and the audit log.
VALIDATION_REASONS = {"json_schema": SCHEMA_REFUSED}


def to_invalid_request(problems: Sequence[Any]) -> InvalidRequest:
    """Return the first of pydantic's problems as an error that names a path such as `stop.0`."""
    problem = problems[0]
    if problem["type"] == "json_invalid":
        # The location of invalid JSON is an offset into the body, not a field.
        path, reason = "", f"the body is not valid JSON: {problem['ctx']['error']}"
    else:
        path, reason = ".".join(map(str, _find_field_path(problem))), _describe_problem(problem)
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
    path_parts = list(problem["loc"][1:])
    if problem["type"].startswith("union_tag"):
        return [*path_parts, "type"]
    if len(path_parts) > 4 and path_parts[0] == "messages" and path_parts[2] == "content":
        del path_parts[4]
    elif len(path_parts) > 1 and path_parts[0] in ("response_format", "tool_choice"):
        del path_parts[1]
    return path_parts
