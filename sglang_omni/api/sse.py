"""Server-sent events: JSON objects as `data:` lines."""

import json
from collections.abc import AsyncGenerator
from contextlib import aclosing
from typing import Any

from sglang_omni.api.errors import envelope, public_error

MEDIA_TYPE = "text/event-stream"
# Proxies must pass the events on as they come.
HEADERS = {"Cache-Control": "no-cache", "X-Accel-Buffering": "no"}
DONE = b"data: [DONE]\n\n"


def event(data: dict[str, Any]) -> bytes:
    """One event. Pure ASCII: several clients split lines at U+2028 and U+0085 as well."""
    return b"data: " + json.dumps(data, separators=(",", ":")).encode("ascii") + b"\n\n"


async def stream(
    objects: AsyncGenerator[dict[str, Any], None], end: bytes = b""
) -> AsyncGenerator[bytes, None]:
    """Encode `objects`, then `end`.

    An error before the first object is raised, so that it can still be an HTTP status; a later
    one becomes an event `{"error": ...}`, which ends the stream without `end`.
    """
    started = False
    async with aclosing(objects):
        try:
            async for item in objects:
                started = True
                yield event(item)
        except Exception as error:
            if not started:
                raise
            yield event(envelope(public_error(error)))
            return
    if end:
        yield end
