"""Server-sent events with JSON objects as `data:` lines."""

import asyncio
import json
import time
from collections.abc import AsyncGenerator, Mapping
from typing import Any, NamedTuple

from starlette.types import Send

from sglang_omni.entrypoints.http.errors import build_envelope, to_public_error
from sglang_omni.entrypoints.http.responses.cancellable import CancellableStream

MEDIA_TYPE = "text/event-stream"
# Proxies must not buffer the events.
HEADERS = {"Cache-Control": "no-cache", "X-Accel-Buffering": "no"}
DONE = b"data: [DONE]\n\n"
# Proxies commonly close an idle connection after 60 s, some after 30 s.
KEEP_ALIVE = b": keep-alive\n\n"
KEEP_ALIVE_S = 15.0

Data = dict[str, Any] | bytes
"""A JSON object, or the ASCII text of one."""


class NamedEvent(NamedTuple):
    """An event with a name, which is written in an `event:` line.

    There is one for each token, and a tuple is made faster than a frozen dataclass.
    """

    name: str
    data: Data


def encode_event(data: Data) -> bytes:
    """Encode one event in ASCII, because some clients also split lines at U+2028 and U+0085."""
    text = data if isinstance(data, bytes) else encode_json(data)
    return b"data: %b\n\n" % text


def encode_named_event(event: NamedEvent) -> bytes:
    """Encode one event with its name."""
    return b"event: %b\n%b" % (event.name.encode("ascii"), encode_event(event.data))


def encode_json(data: dict[str, Any]) -> bytes:
    """Encode a JSON object in ASCII without spaces."""
    return json.dumps(data, separators=(",", ":")).encode("ascii")


class SSEResponse(CancellableStream):
    """A stream of objects as events, then `end`.

    After each `keep_alive_s` seconds without an event a comment is sent, so that no proxy closes
    the connection: also before the first event, while a request waits in a queue or a long prompt
    is read. The first comment or event commits the HTTP status. An error before it is raised, so
    that it can still set the status. A later one is sent as an event `{"error": ...}`, which ends
    the stream without `end`.
    """

    def __init__(
        self,
        objects: AsyncGenerator[Any, None],
        headers: Mapping[str, str] | None = None,
        end: bytes = b"",
        keep_alive_s: float | None = None,
    ) -> None:
        """Take the objects; `keep_alive_s` is `KEEP_ALIVE_S` if None."""
        super().__init__(objects, MEDIA_TYPE, {**HEADERS, **(headers or {})})
        self._end = end
        self._keep_alive_s = KEEP_ALIVE_S if keep_alive_s is None else keep_alive_s

    async def _send_chunks(self, send: Send) -> None:
        keep_alive_task = asyncio.create_task(self._send_keep_alives(send))
        try:
            await super()._send_chunks(send)
            if self._end:
                await self._send_chunk(send, self._end)
        finally:
            keep_alive_task.cancel()
            await asyncio.wait((keep_alive_task,))

    async def _send_keep_alives(self, send: Send) -> None:
        """Send a comment after each pause.

        One timer serves the whole stream, because events are far more frequent than comments.
        """
        self._sent_at = time.monotonic()
        while True:
            wait_s = self._sent_at + self._keep_alive_s - time.monotonic()
            if wait_s > 0:
                await asyncio.sleep(wait_s)
            else:
                await self._send_chunk(send, KEEP_ALIVE)

    def _encode(self, chunk: Data) -> bytes:
        return encode_event(chunk)

    def _encode_error(self, error: Exception) -> bytes:
        return encode_event(build_envelope(to_public_error(error)))


class NamedSSEResponse(SSEResponse):
    """A stream of `NamedEvent`."""

    def _encode(self, chunk: Any) -> bytes:
        return encode_named_event(chunk)
