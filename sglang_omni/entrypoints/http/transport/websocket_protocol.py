"""uvicorn's WebSocket protocol, which reads on while the application is busy, and does not take a
client's mistakes for errors of its own.

uvicorn stops reading after each message until the application takes it. Behind a message that
waits lie the client's pings, which nobody answers then, and its answers to the server's own pings,
for whose absence uvicorn closes the connection.
"""

import asyncio
from typing import Any

from uvicorn.protocols.websockets.websockets_sansio_impl import WebSocketsSansIOProtocol

# Messages of a client that wait for the application; beyond either it is not read on. A minute of
# sound, twice as much as the sound of the longest message that is not a whole recording.
MAX_WAITING_BYTES = 4 << 20
MAX_WAITING = 1024
# What a message takes beside its content.
_MESSAGE_BYTES = 512
# How long the last of an answer, and the client's farewell, may take once a connection is closed.
CLOSE_S = 5.0
# Bytes parsed in one turn of the event loop: hundreds of the smallest frames, a few tens of
# milliseconds.
PIECE_BYTES = 4 << 10
# What is not text, as the WebSocket protocol has it.
INVALID_DATA = 1007


class BufferedWebSocket(WebSocketsSansIOProtocol):
    """Reads up to `MAX_WAITING_BYTES` ahead of the application. While it does not read at all, it
    does not expect answers to its pings: those of a client that is slow to take what it is sent are
    bounded by the route."""

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self._waiting_bytes = 0
        self._abort_timer: asyncio.TimerHandle | None = None
        self._unparsed = bytearray()
        self._parsing: asyncio.Handle | None = None
        # Whether reading waits for the parser.
        self._is_parsing_behind = False

    def data_received(self, data: bytes) -> None:
        """Parse what has arrived, piece by piece: others have their turn in between.

        A handshake comes whole; whoever hands it over sees at once whether it could be read.
        """
        if not self.handshake_initiated:
            super().data_received(data)
            return
        self._unparsed += data
        if self._parsing is None:
            self._parse_piece()

    def _parse_piece(self) -> None:
        self._parsing = None
        if self.transport.is_closing():
            self._unparsed.clear()
            return
        piece = bytes(self._unparsed[:PIECE_BYTES])
        del self._unparsed[:PIECE_BYTES]
        super().data_received(piece)
        if self._unparsed:
            if not self._is_parsing_behind:
                self._is_parsing_behind = True
                self.transport.pause_reading()
            self._parsing = self.loop.call_soon(self._parse_piece)
        elif self._is_parsing_behind:
            self._is_parsing_behind = False
            self._read_on()

    def _read_on(self) -> None:
        """Read again, if neither the parser nor the application is behind."""
        is_behind = self.read_paused or self._is_parsing_behind
        if not (is_behind or self.transport.is_closing()):
            self.transport.resume_reading()

    def send_receive_event_to_app(self) -> None:
        """Queue a message, and stop reading if that is one too many.

        Close the connection where a text is not UTF-8, for which uvicorn would log an error with
        its stack, as often as a client likes.
        """
        if self.curr_msg_data_type == "text" and not self.close_sent and not self._is_text():
            self.frames = []
            self.conn.fail(INVALID_DATA, "a text frame must hold UTF-8")
            self.handle_parser_exception()
            return
        size = sum(map(len, self.frames)) + _MESSAGE_BYTES
        was_paused = self.read_paused
        # The base class stops reading where it is not told that nobody reads.
        self.read_paused = True
        super().send_receive_event_to_app()
        self.read_paused = was_paused
        if self.close_sent:
            return
        self._waiting_bytes += size
        is_full = self._waiting_bytes > MAX_WAITING_BYTES or self.queue.qsize() > MAX_WAITING
        if is_full and not self.read_paused:
            self.read_paused = True
            self.transport.pause_reading()

    async def receive(self) -> Any:
        """Return the next message, and read on once half of the room is free."""
        message: Any = await self.queue.get()
        # Where messages wait it does not wait, and whoever takes them would be alone on the loop.
        await asyncio.sleep(0)
        content = message.get("text") or message.get("bytes") or ""
        if message["type"] == "websocket.receive":
            # Characters of a text may be several bytes; what is left when all are gone is none.
            self._waiting_bytes -= len(content) + _MESSAGE_BYTES
        if self.queue.empty():
            self._waiting_bytes = 0
        has_room = self._waiting_bytes <= MAX_WAITING_BYTES // 2
        if self.read_paused and has_room and self.queue.qsize() <= MAX_WAITING // 2:
            self.read_paused = False
            self._read_on()
        return message

    async def send(self, message: Any) -> None:
        """Send a message once the client has read enough of the earlier ones. To close the
        connection does not wait for that: its client may never read again."""
        if message["type"] == "websocket.close":
            self.writable.set()
            self._abort_soon()
        await super().send(message)

    def shutdown(self) -> None:
        """Close the connection; its client may have stopped reading."""
        super().shutdown()
        self._abort_soon()

    def connection_lost(self, exc: Exception | None) -> None:
        """Forget what was to happen to the connection, and what was not parsed of it."""
        if self._abort_timer is not None:
            self._abort_timer.cancel()
        if self._parsing is not None:
            self._parsing.cancel()
        super().connection_lost(exc)

    def _abort_soon(self) -> None:
        if self._abort_timer is None:
            self._abort_timer = self.loop.call_later(CLOSE_S, self.transport.abort)

    def keepalive_timeout(self) -> None:
        """Close the connection of a client that does not answer, unless its answer is not read."""
        if self.read_paused or self._is_parsing_behind:
            assert self.ping_timeout is not None
            self.pong_timer = self.loop.call_later(self.ping_timeout, self.keepalive_timeout)
            return
        super().keepalive_timeout()
        self._abort_soon()

    def _is_text(self) -> bool:
        try:
            b"".join(self.frames).decode()
        except UnicodeDecodeError:
            return False
        return True
