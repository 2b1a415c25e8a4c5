"""The `error` event."""

from sglang_omni.entrypoints.http.errors import build_envelope
from sglang_omni.entrypoints.realtime.event_sender import EventSender
from sglang_omni.entrypoints.realtime.items import JSON
from sglang_omni.protocol.errors import OmniError


def error_json(error: OmniError) -> JSON:
    """An error as events carry it."""
    told: JSON = build_envelope(error)["error"]
    return told


def put_error(outbox: EventSender, error: OmniError, event_id: str | None = None) -> None:
    """Queue an `error` event; `event_id` is the client's name of the event at fault. The session
    goes on."""
    outbox.put("error", error={**error_json(error), "event_id": event_id})
