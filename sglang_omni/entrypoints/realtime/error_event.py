"""Builds and queues the `error` event."""

from sglang_omni.entrypoints.http.errors import build_envelope
from sglang_omni.entrypoints.realtime.event_sender import EventSender
from sglang_omni.entrypoints.realtime.items import JSON
from sglang_omni.protocol.errors import OmniError


def error_to_json(error: OmniError) -> JSON:
    """Return an error in the form that events carry."""
    body: JSON = build_envelope(error)["error"]
    return body


def put_error(sender: EventSender, error: OmniError, event_id: str | None = None) -> None:
    """Queue an `error` event. The session continues.

    Args:
        sender: Queue of the session's events.
        error: What went wrong.
        event_id: Id that the client gave the event at fault.
    """
    sender.put("error", error={**error_to_json(error), "event_id": event_id})
