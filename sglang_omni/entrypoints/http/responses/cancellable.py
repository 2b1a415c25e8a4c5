"""Responses that cancel their work when the client disconnects."""

import asyncio
import logging
import time
from collections.abc import AsyncGenerator, Awaitable, Callable, Coroutine, Mapping
from contextlib import aclosing
from typing import Any

from fastapi import Response
from starlette.types import Receive, Scope, Send

from sglang_omni.entrypoints.http.errors import to_public_error

logger = logging.getLogger(__name__)


async def run_while_connected(receive: Receive, work: Coroutine[Any, Any, None]) -> None:
    """Run `work`, and cancel it when the client disconnects. Raises what `work` raises."""
    work_task = asyncio.create_task(work)
    disconnect_task = asyncio.create_task(_wait_for_disconnect(receive))
    try:
        await asyncio.wait((work_task, disconnect_task), return_when=asyncio.FIRST_COMPLETED)
    finally:
        disconnect_task.cancel()
        work_task.cancel()
        await asyncio.wait((work_task, disconnect_task))
    if not work_task.cancelled():
        work_task.result()


async def _wait_for_disconnect(receive: Receive) -> None:
    while (await receive())["type"] != "http.disconnect":
        pass


class CancellableResponse(Response):
    """The response that `make_response` returns; it is cancelled if the client disconnects."""

    def __init__(self, make_response: Callable[[], Awaitable[Response]]) -> None:
        super().__init__()
        self._make_response = make_response

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Make and send the response. Raises errors of `make_response` before anything is sent."""
        await run_while_connected(receive, self._send(scope, receive, send))

    async def _send(self, scope: Scope, receive: Receive, send: Send) -> None:
        response = await self._make_response()
        await response(scope, receive, send)


class CancellableStream(Response):
    """A streaming response of `chunks`.

    The headers are sent with the first chunk, so that an error before it can still set the HTTP
    status. A later error leaves the body incomplete in a way that the client notices.
    """

    def __init__(
        self, chunks: AsyncGenerator[Any, None], media_type: str, headers: Mapping[str, str]
    ) -> None:
        super().__init__(headers=headers, media_type=media_type)
        # The base class has set the length of an empty body.
        del self.headers["content-length"]
        self._chunks = chunks
        self._has_started = False
        self._start_lock = asyncio.Lock()
        self._sent_at = 0.0

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Send until the chunks end or the client disconnects."""
        await run_while_connected(receive, self._send(send))

    async def _send(self, send: Send) -> None:
        try:
            await self._send_chunks(send)
        except Exception as error:
            if not self._has_started:
                raise
            if (error_chunk := self._encode_error(error)) is None:
                # Without a final chunk the server drops the connection, which the client notices.
                logger.error("a response was truncated: %s", to_public_error(error).code)
                return
            await self._send_chunk(send, error_chunk)
        await self._start(send)
        await send({"type": "http.response.body", "body": b"", "more_body": False})

    async def _send_chunks(self, send: Send) -> None:
        async with aclosing(self._chunks) as chunks:
            async for chunk in chunks:
                await self._send_chunk(send, self._encode(chunk))

    def _encode(self, chunk: Any) -> bytes:
        """Return the bytes of one chunk; here a chunk is bytes already."""
        return chunk

    def _encode_error(self, error: Exception) -> bytes | None:
        """Return a chunk that reports an error, or None if the media type cannot."""
        return None

    async def _send_chunk(self, send: Send, chunk: bytes) -> None:
        if not self._has_started:
            await self._start(send)
        self._sent_at = time.monotonic()
        await send({"type": "http.response.body", "body": chunk, "more_body": True})

    async def _start(self, send: Send) -> None:
        """Send the headers, unless they have been sent."""
        async with self._start_lock:
            if not self._has_started:
                start = {"type": "http.response.start", "status": self.status_code}
                await send({**start, "headers": self.raw_headers})
                self._has_started = True
