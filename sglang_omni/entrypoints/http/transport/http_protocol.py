"""uvicorn's HTTP protocol, within the limits of one connection.

uvicorn and its parser bound neither what a request's head (its request line and headers) holds nor
how long it takes. Here both are bounded before anything is parsed or asked for a key.
"""

import asyncio
import json
import time
from collections.abc import Callable
from typing import Any, ClassVar

from uvicorn.protocols.http.httptools_impl import STATUS_LINE, HttpToolsProtocol

from sglang_omni.config.http_options import HttpOptions
from sglang_omni.entrypoints.http.errors import envelope
from sglang_omni.entrypoints.http.transport.half_close import PROBE, HalfClosedWatch
from sglang_omni.entrypoints.http.transport.slow_clients import SlowClientGuard, SlowClientRules
from sglang_omni.observability.refusals import (
    ARRIVING,
    NO_ROUTE,
    Refusal,
    get_reason,
    is_audited,
    parse_client_address,
)
from sglang_omni.protocol.errors import (
    HeadersTooLarge,
    InvalidRequest,
    OmniError,
    RequestTimeout,
    UrlTooLong,
)

# The parser keeps what it cannot yet pass on, so it gets only so much before that is checked.
PIECE_BYTES = 64 << 10
# A client that is refused while it still sends may go on for a while, or it would see a reset
# connection in place of its answer.
LINGER_S = 5.0
LINGER_BYTES = 128 << 20
# Requests that one connection may send ahead of its answers.
MAX_PIPELINED = 16
# Name, colon, blank and line end: what a header has besides its name and value.
HEADER_EXTRA_BYTES = 4
# What the audit log says of what is no HTTP.
MALFORMED = "malformed_http"


class _AnswerTransport:
    """The transport as an answer uses it, with a `close` of its own."""

    def __init__(self, transport: asyncio.Transport, close: Callable[[], None]) -> None:
        self.write, self.close = transport.write, close
        self.is_closing, self.get_extra_info = transport.is_closing, transport.get_extra_info


class _Refused(Exception):
    """Stops the parser; the protocol knows why."""


class SlowClientProtocol(HttpToolsProtocol):
    """One connection, within `limits` for what it sends and `unread_rules` for what it leaves
    unread. `scope["state"]["arrived_at"]` is the monotonic time of a request's first byte."""

    limits: ClassVar[HttpOptions]
    unread_rules: ClassVar[SlowClientRules]

    @staticmethod
    def on_refusal(refusal: Refusal) -> None:
        """Is told of what is refused before there is a request."""

    def connection_made(self, transport: Any) -> None:
        super().connection_made(transport)
        self.unread = SlowClientGuard(transport, self.unread_rules)
        # The request at work; uvicorn remembers the last one only, which may wait for its turn.
        self._running: Any = None
        self._refusal: OmniError | None = None
        # The answer is out, the rest of its request is read for its client's sake alone.
        self._is_discarding = False
        self._is_upgraded = self._is_in_body = False
        # Bytes since the parser last made progress, and those of the head that it has passed on.
        self._pending_bytes = self._head_bytes = 0
        self._discarded_bytes = 0
        self._head_timer: asyncio.TimerHandle | None = None
        self._linger_timer: asyncio.TimerHandle | None = None
        self._half_closed: HalfClosedWatch | None = None
        self._start_head_timer()

    def connection_lost(self, exc: Exception | None) -> None:
        self.unread.stop()
        self._stop_head_timer()
        self._stop_lingering()
        if self._half_closed is not None:
            self._half_closed.stop()
        self._disconnect_running()
        super().connection_lost(exc)

    def data_received(self, data: bytes) -> None:
        if self._refusal is not None or self._is_discarding:
            self._discard(len(data))
            return
        for start in range(0, len(data), PIECE_BYTES):
            is_over = self._refusal is not None or self._is_discarding
            if self._is_upgraded or is_over or self.transport.is_closing():
                return
            self._parse(data[start : start + PIECE_BYTES])

    def _parse(self, piece: bytes) -> None:
        if not self._is_in_body:
            self._start_head_timer()
        self._pending_bytes += len(piece)
        super().data_received(piece)
        if self._pending_bytes > self.limits.max_header_bytes and self._refusal is None:
            self._refuse(self._headers_too_large())

    def eof_received(self) -> bool:  # type: ignore[override]
        """Keep the connection for the answer to a request that has arrived whole."""
        cycle, running = self.cycle, self._running
        # Over TLS the transport closes in any case.
        if self.scheme == "https" or not self._is_answering() or cycle.more_body:
            return False
        cycle.keep_alive = False
        is_version_1_0 = running.scope["http_version"] == "1.0"
        if not (running.response_started or is_version_1_0):
            self.transport.write(PROBE)
        is_started = lambda: self._running.response_started  # noqa: E731
        self._half_closed = HalfClosedWatch(self.transport, is_started)
        return True

    def on_message_begin(self) -> None:
        super().on_message_begin()
        self.scope["state"]["arrived_at"] = time.monotonic()
        self._head_bytes = 0
        self._start_head_timer()

    def on_url(self, url: bytes) -> None:
        super().on_url(url)
        if len(self.url) > self.limits.max_url_bytes:
            limit = self.limits.max_url_bytes
            self._stop_parsing(UrlTooLong(f"the URL is longer than {limit} bytes"))
        self._count_head(len(url))

    def on_header(self, name: bytes, value: bytes) -> None:
        super().on_header(name, value)
        self._count_head(len(name) + len(value) + HEADER_EXTRA_BYTES)

    def on_headers_complete(self) -> None:
        self._stop_head_timer()
        self._pending_bytes, self._is_in_body = 0, True
        if len(self.pipeline) >= MAX_PIPELINED:
            self._stop_parsing(InvalidRequest("too many requests ahead of their answers"))
        super().on_headers_complete()
        cycle: Any = self.cycle
        if cycle is not None:
            cycle.transport = _AnswerTransport(self.transport, self._close_answered)

    def on_body(self, body: bytes) -> None:
        self._pending_bytes = 0
        if self.cycle is not None and self.cycle.response_complete:
            self._discard(len(body))
        super().on_body(body)

    def on_message_complete(self) -> None:
        self._pending_bytes, self._is_in_body = 0, False
        self._stop_lingering()
        super().on_message_complete()

    def on_response_complete(self) -> None:
        super().on_response_complete()
        if self._is_in_body and self.cycle.response_complete:
            self._start_lingering()

    def _close_answered(self) -> None:
        """Close the connection behind an answer, once it can be read: not while its client still
        sends a body that nobody reads, for then the connection would be reset."""
        if not self._is_in_body:
            self.transport.close()
            return
        self._is_discarding = True
        if self.transport.can_write_eof():
            self.transport.write_eof()
        self._start_lingering()

    def handle_websocket_upgrade(self) -> None:
        if self._is_answering():
            # The answer under way and the session would write to one connection.
            self._refuse(InvalidRequest("a WebSocket begins once all requests are answered"))
            return
        # A session bounds by itself what its client sends and leaves unread.
        self._is_upgraded = True
        self.unread.stop()
        self.transport.set_write_buffer_limits()
        super().handle_websocket_upgrade()
        websocket: Any = self.transport.get_protocol()
        if not websocket.handshake_initiated:
            self._refuse_handshake(websocket)

    def _refuse_handshake(self, websocket: Any) -> None:
        """Answer a handshake that the WebSocket library could not read: uvicorn would leave the
        connection open and silent."""
        invalid = InvalidRequest("this is not a valid WebSocket handshake")
        self._report(invalid)
        answer = b"".join(websocket.conn.data_to_send())
        self.transport.write(answer or error_bytes(invalid, self.server_state.default_headers))
        self.transport.close()

    def send_400_response(self, msg: str) -> None:
        """Answer what the parser did not take, or was stopped at."""
        self._refuse(self._refusal or InvalidRequest("this is not a valid HTTP/1.1 request"))

    def _count_head(self, size: int) -> None:
        self._head_bytes += size
        if self._head_bytes > self.limits.max_header_bytes:
            self._stop_parsing(self._headers_too_large())

    def _headers_too_large(self) -> HeadersTooLarge:
        limit = self.limits.max_header_bytes
        return HeadersTooLarge(f"the request line and headers are larger than {limit} bytes")

    def _stop_parsing(self, error: OmniError) -> None:
        """Leave a callback of the parser; uvicorn then calls `send_400_response`."""
        self._refusal = error
        raise _Refused

    def _refuse(self, error: OmniError) -> None:
        """Send `error` if no answer is under way, and close the connection once it can be read."""
        self._refusal = error
        self._report(error)
        self._stop_head_timer()
        cycle = self.cycle
        if self._is_answering():
            if cycle.response_started or not cycle.more_body or self.pipeline:
                self._disconnect_running()
                self.transport.close()
                return
            # The application waits for the rest of this body, which will not be read.
            self._disconnect_running()
        self.transport.write(error_bytes(error, self.server_state.default_headers))
        if self.transport.can_write_eof():
            self.transport.write_eof()
        self._start_lingering()

    def _report(self, error: OmniError) -> None:
        client = parse_client_address(self.client)
        reason = get_reason(error) if is_audited(error) else MALFORMED
        route = ARRIVING if self._is_answering() else NO_ROUTE
        self.on_refusal(Refusal(error.status, reason, route, client=client))

    def _start_asgi_task(self, cycle: Any, app: Any) -> None:
        self._running = cycle
        super()._start_asgi_task(cycle, app)

    def _disconnect_running(self) -> None:
        """Tell the request at work that nobody is there any more: it must neither go on nor write
        to a closed connection."""
        if self._running is not None and not self._running.response_complete:
            self._running.disconnected = True
            self._running.waiting_for_100_continue = False
            self._running.message_event.set()

    def _is_answering(self) -> bool:
        return self.cycle is not None and not self.cycle.response_complete

    def _start_head_timer(self) -> None:
        if self._head_timer is None:
            seconds = self.limits.header_timeout
            self._head_timer = self.loop.call_later(seconds, self._on_late_head)

    def _stop_head_timer(self) -> None:
        if self._head_timer is not None:
            self._head_timer.cancel()
            self._head_timer = None

    def _on_late_head(self) -> None:
        self._head_timer = None
        if self._is_answering():
            # Some clients send a stray line end after a body; they wait for an answer.
            self._start_head_timer()
        elif self._pending_bytes:
            seconds = self.limits.header_timeout
            self._refuse(RequestTimeout(f"the headers did not arrive within {seconds:g} s"))
            # Late as it is, it does not send in a hurry either.
            self.transport.close()
        else:
            self.transport.close()

    def _start_lingering(self) -> None:
        if self._linger_timer is None and not self.transport.is_closing():
            self._linger_timer = self.loop.call_later(LINGER_S, self.transport.abort)

    def _stop_lingering(self) -> None:
        self._discarded_bytes = 0
        if self._linger_timer is not None:
            self._linger_timer.cancel()
            self._linger_timer = None

    def _discard(self, size: int) -> None:
        self._discarded_bytes += size
        if self._discarded_bytes > LINGER_BYTES:
            self.transport.abort()


def bounded(
    unread: SlowClientRules, http: HttpOptions, refused: Callable[[Refusal], None]
) -> type[SlowClientProtocol]:
    """Return the protocol with these limits, for uvicorn, which makes one for each connection.

    `refused` is told of what is refused before there is a request, or before it has arrived whole.
    """

    class ConfiguredProtocol(SlowClientProtocol):
        unread_rules, limits = unread, http

        @staticmethod
        def on_refusal(refusal: Refusal) -> None:
            refused(refusal)

    return ConfiguredProtocol


def error_bytes(error: OmniError, headers: list[tuple[bytes, bytes]]) -> bytes:
    """Return the response for `error`, the last one of its connection, as it is sent."""
    body = json.dumps(envelope(error)).encode()
    lines = [name + b": " + value for name, value in headers]
    lines += [
        b"content-type: application/json",
        b"content-length: %d" % len(body),
        b"connection: close",
    ]
    return STATUS_LINE[error.status] + b"\r\n".join(lines) + b"\r\n\r\n" + body
