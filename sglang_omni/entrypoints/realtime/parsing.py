"""Parses frames to client events, and converts validation errors to API errors."""

import json
from typing import Any, get_args

from pydantic import ValidationError

from sglang_omni.entrypoints.http.request_body.json_parse import parse_json
from sglang_omni.entrypoints.http.request_body.json_scan import check_small_json
from sglang_omni.entrypoints.http.request_body.reader import get_offload_size
from sglang_omni.entrypoints.realtime.client_events import EVENTS, Event
from sglang_omni.entrypoints.realtime.field_rules import EVENT_RULES
from sglang_omni.entrypoints.requests.validation import VALIDATION_CODES
from sglang_omni.protocol.compat.similar_names import find_similar_field
from sglang_omni.protocol.errors import InvalidRequest
from sglang_omni.protocol.unicode import is_unicode

EVENT_TYPES = frozenset(
    get_args(kind.model_fields["type"].annotation)[0] for kind in get_args(Event)
)
# Tags of unions: pydantic adds them to the location of an error, between the client's field names.
_TAGS = frozenset(
    (
        *EVENT_TYPES,
        *("audio/pcm", "audio/pcmu", "audio/pcma", "server_vad", "semantic_vad"),
        *("message", "function_call", "function_call_output", "item_reference"),
        *("input_text", "input_audio", "input_image", "output_text", "output_audio"),
        *("text", "audio"),
    )
)


def parse_object(frame: str) -> dict[str, Any]:
    """Parse the JSON object in a frame. In a large frame, also check that strings are Unicode.

    Raises:
        InvalidRequest: The frame is not valid JSON, or not an object.
    """
    text = frame.encode()
    if get_offload_size(frame):
        value = parse_json(text, "the event", _reject_constant)
    else:
        check_small_json(text)
        value = _parse_small_json(frame)
    if not isinstance(value, dict):
        raise _make_error("invalid_json", "an event must be a JSON object", None)
    return value


def _parse_small_json(frame: str) -> Any:
    try:
        return json.loads(frame, parse_constant=_reject_constant)
    except (ValueError, RecursionError) as error:
        reason = "nested too deeply" if isinstance(error, RecursionError) else str(error)
        raise _make_error("invalid_json", f"the event is not valid JSON: {reason}", None) from None


def get_event_id(value: dict[str, Any]) -> str | None:
    """Return the id that the client gave an event, for errors to refer to."""
    event_id = value.get("event_id")
    return event_id if isinstance(event_id, str) and is_unicode(event_id) else None


def parse_event(value: dict[str, Any]) -> Event:
    """Validate an event.

    Raises:
        InvalidRequest: A field is invalid; `param` names it.
    """
    event_type = value.get("type")
    if event_type is None:
        raise _make_error("missing_required_parameter", "type: Field required", "type")
    if not isinstance(event_type, str) or event_type not in EVENT_TYPES:
        supported = ", ".join(sorted(EVENT_TYPES))
        message = f"type: unknown event {event_type!r:.80}; supported events: {supported}"
        raise _make_error("invalid_value", message, "type")
    try:
        return EVENTS.validate_python(value)
    except ValidationError as error:
        raise _to_api_error(error.errors(include_url=False, include_input=False)[0]) from None


def _to_api_error(problem: Any) -> InvalidRequest:
    path = _field_path(problem["loc"])
    if problem["type"].startswith("union_tag"):
        path = f"{path}.type" if path else "type"
    is_unknown = problem["type"] == "extra_forbidden"
    reason = _describe_unknown(path) if is_unknown else problem["msg"]
    code = VALIDATION_CODES.get(problem["type"], InvalidRequest.code)
    return _make_error(code, f"{path}: {reason}" if path else reason, path or None)


def _describe_unknown(path: str) -> str:
    similar = find_similar_field(
        EVENT_RULES, [name for name in path.split(".") if not name.isdigit()]
    )
    return "unknown field" + (f"; did you mean {similar!r}?" if similar else "")


def _field_path(location: tuple[int | str, ...]) -> str:
    """Return the dotted path of a field as the client wrote it, without the tags of unions.

    `audio` and `text` are both tags and field names. A tag follows an index, a field name does not.
    """
    names: list[str] = []
    previous: int | str = ""
    for step in location[1:]:
        is_ambiguous = step in ("audio", "text")
        is_tag = step in _TAGS and (not is_ambiguous or isinstance(previous, int))
        if not is_tag and not str(step).startswith(("literal[", "constrained-", "function-")):
            names.append(str(step))
        previous = step
    return ".".join(names)


def _make_error(code: str, message: str, param: str | None) -> InvalidRequest:
    error = InvalidRequest(message, param=param)
    error.code = code
    return error


def _reject_constant(name: str) -> Any:
    raise ValueError(f"{name} is not JSON")
