"""Server-sent events: JSON objects as `data:` lines."""

import asyncio
import json
import time
from collections.abc import AsyncGenerator, Mapping
from contextlib import aclosing
from typing import Any

from starlette.types import Send

from sglang_omni.entrypoints.http.errors import build_envelope, to_public_error
from sglang_omni.entrypoints.http.responses.cancellable import CancellableStream

MEDIA_TYPE = "text/event-stream"
# Proxies must pass the events on as they come.
HEADERS = {"Cache-Control": "no-cache", "X-Accel-Buffering": "no"}
DONE = b"data: [DONE]\n\n"
# Proxies commonly give up after a minute, some after half of one.
KEEP_ALIVE = b": keep-alive\n\n"
QUIET_S = 15.0

Data = dict[str, Any] | bytes
"""A JSON object, or the ASCII text of one."""


def event(data: Data) -> bytes:
    """One event. Pure ASCII: several clients split lines at U+2028 and U+0085 as well."""
    text = data if isinstance(data, bytes) else encoded(data)
    return b"data: %b\n\n" % text


def encoded(data: dict[str, Any]) -> bytes:
    """The text of a JSON object, without blanks and in ASCII."""
    return json.dumps(data, separators=(",", ":")).encode("ascii")


class SSEResponse(CancellableStream):
    """Objects as events, then `end`. While nothing comes for `quiet_s` seconds a comment goes out,
    so that no proxy takes the connection for dead.

    An error before the first event is raised, so that it can still be an HTTP status; a later one
    becomes an event `{"error": ...}`, which ends the stream without `end`.
    """

    def __init__(
        self,
        objects: AsyncGenerator[Any, None],
        headers: Mapping[str, str] | None = None,
        end: bytes = b"",
        quiet_s: float = QUIET_S,
    ) -> None:
        super().__init__(_events(objects, end), MEDIA_TYPE, {**HEADERS, **(headers or {})})
        self._quiet_s = quiet_s

    async def _send_pieces(self, send: Send) -> None:
        keeping = asyncio.create_task(self._keep_alive(send))
        try:
            await super()._send_pieces(send)
        finally:
            keeping.cancel()
            await asyncio.wait((keeping,))

    async def _keep_alive(self, send: Send) -> None:
        """Fill the pauses. A timer for all of them: events come a hundred times as often."""
        self._sent_at = time.monotonic()
        while True:
            rest_s = self._sent_at + self._quiet_s - time.monotonic()
            if rest_s > 0:
                await asyncio.sleep(rest_s)
            else:
                await self._put(send, KEEP_ALIVE)

    def _last_words(self, error: Exception) -> bytes:
        return event(build_envelope(to_public_error(error)))


async def _events(objects: AsyncGenerator[Data, None], end: bytes) -> AsyncGenerator[bytes, None]:
    async with aclosing(objects):
        async for one in objects:
            yield event(one)
    if end:
        yield end
