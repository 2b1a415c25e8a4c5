"""A frame to a client event; what is wrong with it, in the words of the error vocabulary."""

import json
from typing import Any, get_args

from pydantic import ValidationError

from sglang_omni.entrypoints.http.errors import VALIDATION_CODES
from sglang_omni.entrypoints.http.request_body.json_parse import parse_json
from sglang_omni.entrypoints.http.request_body.json_scan import check_small_json
from sglang_omni.entrypoints.http.request_body.reader import get_offload_size
from sglang_omni.entrypoints.realtime.client_events import EVENTS, Event
from sglang_omni.protocol.errors import InvalidRequest
from sglang_omni.protocol.unicode import is_unicode

EVENT_TYPES = frozenset(
    get_args(kind.model_fields["type"].annotation)[0] for kind in get_args(Event)
)
# Tags of unions, which pydantic puts into a place between the names that the client wrote.
_TAGS = frozenset(
    (
        *EVENT_TYPES,
        *("audio/pcm", "audio/pcmu", "audio/pcma", "server_vad", "semantic_vad"),
        *("message", "function_call", "function_call_output", "item_reference"),
        *("input_text", "input_audio", "input_image", "output_text", "output_audio"),
        *("text", "audio"),
    )
)


def read_object(frame: str) -> dict[str, Any]:
    """The JSON object in a frame. Raises `InvalidRequest` for anything else; a large one is
    known to be Unicode then."""
    text = frame.encode()
    if get_offload_size(frame):
        value = parse_json(text, "the event", _no_constant)
    else:
        check_small_json(text)
        value = _loads(frame)
    if not isinstance(value, dict):
        raise _coded("invalid_json", "an event is a JSON object", None)
    return value


def _loads(frame: str) -> Any:
    try:
        return json.loads(frame, parse_constant=_no_constant)
    except (ValueError, RecursionError) as error:
        reason = "nested too deeply" if isinstance(error, RecursionError) else str(error)
        raise _coded("invalid_json", f"the event is not valid JSON: {reason}", None) from None


def event_id_of(value: dict[str, Any]) -> str | None:
    """The client's own name for an event, for errors to refer to."""
    name = value.get("event_id")
    return name if isinstance(name, str) and is_unicode(name) else None


def to_event(value: dict[str, Any]) -> Event:
    """A valid event. Raises `InvalidRequest`, naming the field at fault."""
    kind = value.get("type")
    if kind is None:
        raise _coded("missing_required_parameter", "type: Field required", "type")
    if not isinstance(kind, str) or kind not in EVENT_TYPES:
        known = ", ".join(sorted(EVENT_TYPES))
        raise _coded("invalid_value", f"type: no event {kind!r:.80}; there are {known}", "type")
    try:
        return EVENTS.validate_python(value)
    except ValidationError as error:
        raise _invalid(error.errors(include_url=False, include_input=False)[0]) from None


def _invalid(problem: Any) -> InvalidRequest:
    path = _place(problem["loc"])
    if problem["type"].startswith("union_tag"):
        path = f"{path}.type" if path else "type"
    unknown = problem["type"] == "extra_forbidden"
    reason = "unknown field" if unknown else problem["msg"]
    code = VALIDATION_CODES.get(problem["type"], InvalidRequest.code)
    return _coded(code, f"{path}: {reason}" if path else reason, path or None)


def _place(steps: tuple[int | str, ...]) -> str:
    """The dotted path of a field as the client wrote it, less the tags of unions.

    `audio` and `text` are tags as well as names: a tag comes after a number, a name does not.
    """
    named: list[str] = []
    before: int | str = ""
    for step in steps[1:]:
        ambiguous = step in ("audio", "text")
        is_tag = step in _TAGS and (not ambiguous or isinstance(before, int))
        if not is_tag and not str(step).startswith(("literal[", "constrained-", "function-")):
            named.append(str(step))
        before = step
    return ".".join(named)


def _coded(code: str, message: str, param: str | None) -> InvalidRequest:
    error = InvalidRequest(message, param=param)
    error.code = code
    return error


def _no_constant(name: str) -> Any:
    raise ValueError(f"{name} is not JSON")
