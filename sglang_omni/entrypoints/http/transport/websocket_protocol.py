"""uvicorn's WebSocket protocol with a bounded receive queue.

uvicorn stops reading after each message until the application takes it. Pings and pongs behind that
message are then not read: the client gets no pong, and uvicorn closes the connection because it
misses the client's pong. This protocol reads ahead, and does not log a client's invalid text as an
error of the server.
"""

import asyncio
from typing import Any

from uvicorn.protocols.websockets.websockets_sansio_impl import WebSocketsSansIOProtocol

# Limits on the messages that wait for the application; beyond either, reading pauses. The bytes
# hold a minute of audio, twice the longest message that is not a whole recording.
MAX_QUEUED_BYTES = 4 << 20
MAX_QUEUED_MESSAGES = 1024
# The memory of a message beside its content.
_MESSAGE_OVERHEAD_BYTES = 512
# Seconds for the last output and the client's close frame after the connection is closed.
CLOSE_TIMEOUT_S = 5.0
# Bytes parsed in one turn of the event loop: hundreds of minimal frames, which take tens of
# milliseconds.
PARSE_CHUNK_BYTES = 4 << 10
# WebSocket close code for text that is not UTF-8.
INVALID_DATA = 1007


class BufferedWebSocket(WebSocketsSansIOProtocol):
    """WebSocket protocol that reads up to `MAX_QUEUED_BYTES` ahead of the application.

    While reading is paused, a missing pong does not close the connection. The route limits how long
    a client may be slow to read.
    """

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self._queued_bytes = 0
        self._abort_timer: asyncio.TimerHandle | None = None
        self._unparsed = bytearray()
        self._parsing: asyncio.Handle | None = None
        # Whether reading is paused until the parser has caught up.
        self._is_parser_behind = False

    def data_received(self, data: bytes) -> None:
        """Parse received data in chunks, and let other tasks run in between.

        A handshake is parsed at once, because the caller checks its result.
        """
        if not self.handshake_initiated:
            super().data_received(data)
            return
        self._unparsed += data
        if self._parsing is None:
            self._parse_chunk()

    def _parse_chunk(self) -> None:
        self._parsing = None
        if self.transport.is_closing():
            self._unparsed.clear()
            return
        chunk = bytes(self._unparsed[:PARSE_CHUNK_BYTES])
        del self._unparsed[:PARSE_CHUNK_BYTES]
        super().data_received(chunk)
        if self._unparsed:
            if not self._is_parser_behind:
                self._is_parser_behind = True
                self.transport.pause_reading()
            self._parsing = self.loop.call_soon(self._parse_chunk)
        elif self._is_parser_behind:
            self._is_parser_behind = False
            self._resume_reading()

    def _resume_reading(self) -> None:
        """Resume reading if neither the parser nor the application is behind."""
        is_behind = self.read_paused or self._is_parser_behind
        if not (is_behind or self.transport.is_closing()):
            self.transport.resume_reading()

    def send_receive_event_to_app(self) -> None:
        """Queue a message, and pause reading if the queue is full.

        Close the connection if a text is not UTF-8. uvicorn would log a traceback for each.
        """
        if self.curr_msg_data_type == "text" and not self.close_sent and not self._is_utf8():
            self.frames = []
            self.conn.fail(INVALID_DATA, "a text frame must hold UTF-8")
            self.handle_parser_exception()
            return
        size = sum(map(len, self.frames)) + _MESSAGE_OVERHEAD_BYTES
        was_paused = self.read_paused
        # The base class pauses reading unless it is told that reading is already paused.
        self.read_paused = True
        super().send_receive_event_to_app()
        self.read_paused = was_paused
        if self.close_sent:
            return
        self._queued_bytes += size
        is_full = self._queued_bytes > MAX_QUEUED_BYTES or self.queue.qsize() > MAX_QUEUED_MESSAGES
        if is_full and not self.read_paused:
            self.read_paused = True
            self.transport.pause_reading()

    async def receive(self) -> Any:
        """Return the next message, and resume reading once half of the queue is free."""
        message: Any = await self.queue.get()
        # `get` does not yield while messages are queued; let other tasks run.
        await asyncio.sleep(0)
        content = message.get("text") or message.get("bytes") or ""
        if message["type"] == "websocket.receive":
            # A character may have several bytes, so the count drifts; it is reset when empty.
            self._queued_bytes -= len(content) + _MESSAGE_OVERHEAD_BYTES
        if self.queue.empty():
            self._queued_bytes = 0
        has_room = self._queued_bytes <= MAX_QUEUED_BYTES // 2
        if self.read_paused and has_room and self.queue.qsize() <= MAX_QUEUED_MESSAGES // 2:
            self.read_paused = False
            self._resume_reading()
        return message

    async def send(self, message: Any) -> None:
        """Send a message once the client has read enough of the earlier ones.

        A close message does not wait, because the client may never read again.
        """
        if message["type"] == "websocket.close":
            self.writable.set()
            self._abort_soon()
        await super().send(message)

    def shutdown(self) -> None:
        """Close the connection, and abort it later if the client does not read."""
        super().shutdown()
        self._abort_soon()

    def connection_lost(self, exc: Exception | None) -> None:
        """Cancel the abort timer and the parsing of the connection."""
        if self._abort_timer is not None:
            self._abort_timer.cancel()
        if self._parsing is not None:
            self._parsing.cancel()
        super().connection_lost(exc)

    def _abort_soon(self) -> None:
        if self._abort_timer is None:
            self._abort_timer = self.loop.call_later(CLOSE_TIMEOUT_S, self.transport.abort)

    def keepalive_timeout(self) -> None:
        """Close the connection if no pong arrived, unless reading is paused."""
        if self.read_paused or self._is_parser_behind:
            assert self.ping_timeout is not None
            self.pong_timer = self.loop.call_later(self.ping_timeout, self.keepalive_timeout)
            return
        super().keepalive_timeout()
        self._abort_soon()

    def _is_utf8(self) -> bool:
        try:
            b"".join(self.frames).decode()
        except UnicodeDecodeError:
            return False
        return True
