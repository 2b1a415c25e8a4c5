"""Responses that live exactly as long as their client: when it goes, the work is cancelled."""

import asyncio
import logging
import time
from collections.abc import AsyncGenerator, Awaitable, Callable, Coroutine, Mapping
from contextlib import aclosing
from typing import Any

from fastapi import Response
from starlette.types import Receive, Scope, Send

from sglang_omni.entrypoints.http.errors import public_error
from sglang_omni.observability.trace import Trace, current_trace
from sglang_omni.pipeline.request import AudioDelta, Event, Finished, TextDelta
from sglang_omni.protocol.errors import EngineFailed

logger = logging.getLogger(__name__)


async def until_finished(events: AsyncGenerator[Event, None]) -> AsyncGenerator[Event, None]:
    """Pass events on, up to a true end.

    Raises `EngineFailed` where the answer was cut short: aborted by the server, or without its
    `Finished`. A client must not take such an answer for a whole one.
    """
    trace = current_trace()
    async with aclosing(events):
        async for event in events:
            if trace is not None:
                _note(trace, event)
            if isinstance(event, Finished):
                if event.reason == "abort":
                    raise EngineFailed("the server aborted the answer")
                yield event
                return
            yield event
    raise EngineFailed("the answer ended too early")


def _note(trace: Trace, event: Event) -> None:
    if isinstance(event, AudioDelta):
        trace.record_audio(event.pcm.size)
    elif isinstance(event, TextDelta):
        trace.record_text()


async def while_connected(receive: Receive, work: Coroutine[Any, Any, None]) -> None:
    """Run `work`, and cancel it when the client disconnects. Raises what `work` raises."""
    working = asyncio.create_task(work)
    watching = asyncio.create_task(_disconnected(receive))
    try:
        await asyncio.wait((working, watching), return_when=asyncio.FIRST_COMPLETED)
    finally:
        watching.cancel()
        working.cancel()
        await asyncio.wait((working, watching))
    if not working.cancelled():
        working.result()


async def _disconnected(receive: Receive) -> None:
    while (await receive())["type"] != "http.disconnect":
        pass


class CancellableResponse(Response):
    """The response that `answer` returns, computed while the client waits."""

    def __init__(self, answer: Callable[[], Awaitable[Response]]) -> None:
        super().__init__()
        self._answer = answer

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Compute and send; errors of `answer` are raised before anything is sent."""
        await while_connected(receive, self._send(scope, receive, send))

    async def _send(self, scope: Scope, receive: Receive, send: Send) -> None:
        response = await self._answer()
        await response(scope, receive, send)


class CancellableStream(Response):
    """`pieces` as they come. The headers leave with the first one, so that an error before it
    still is an HTTP status; an error after it leaves the body visibly incomplete."""

    def __init__(
        self, pieces: AsyncGenerator[bytes, None], media_type: str, headers: Mapping[str, str]
    ) -> None:
        super().__init__(headers=headers, media_type=media_type)
        # The base class has just announced an empty body.
        del self.headers["content-length"]
        self._pieces = pieces
        self._started = False
        self._starting = asyncio.Lock()
        self._sent_at = 0.0

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Send until the pieces end or the client goes."""
        await while_connected(receive, self._send(send))

    async def _send(self, send: Send) -> None:
        try:
            await self._send_pieces(send)
        except Exception as error:
            if not self._started:
                raise
            if (words := self._last_words(error)) is None:
                # Without a last piece the server drops the connection: the client sees the cut.
                logger.error("a response broke off: %s", public_error(error).code)
                return
            await self._put(send, words)
        await self._start(send)
        await send({"type": "http.response.body", "body": b"", "more_body": False})

    async def _send_pieces(self, send: Send) -> None:
        async with aclosing(self._pieces) as pieces:
            async for piece in pieces:
                await self._put(send, piece)

    def _last_words(self, error: Exception) -> bytes | None:
        """How the body tells of an error; None if it cannot."""
        return None

    async def _put(self, send: Send, piece: bytes) -> None:
        if not self._started:
            await self._start(send)
        self._sent_at = time.monotonic()
        await send({"type": "http.response.body", "body": piece, "more_body": True})

    async def _start(self, send: Send) -> None:
        """Send the headers, unless they have been."""
        async with self._starting:
            if not self._started:
                start = {"type": "http.response.start", "status": self.status_code}
                await send({**start, "headers": self.raw_headers})
                self._started = True
