"""The `error` event."""

from sglang_omni.api.errors import envelope
from sglang_omni.errors import OmniError
from sglang_omni.realtime.items import JSON
from sglang_omni.realtime.outbox import Outbox


def error_json(error: OmniError) -> JSON:
    """An error as events carry it."""
    told: JSON = envelope(error)["error"]
    return told


def put_error(outbox: Outbox, error: OmniError, event_id: str | None = None) -> None:
    """Queue an `error` event; `event_id` is the client's name of the event at fault. The session
    goes on."""
    outbox.put("error", error={**error_json(error), "event_id": event_id})
