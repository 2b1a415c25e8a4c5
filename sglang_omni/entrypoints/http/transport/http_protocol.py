"""uvicorn's HTTP protocol with limits for each connection.

uvicorn and its parser limit neither the size of a request's head (the request line and headers) nor
the time it takes to arrive. This protocol limits both before a request is handled or its API key is
checked.
"""

import asyncio
import json
import time
from collections.abc import Callable
from typing import Any, ClassVar

from uvicorn.protocols.http.httptools_impl import STATUS_LINE, HttpToolsProtocol

from sglang_omni.config.http_options import HttpOptions
from sglang_omni.entrypoints.http.errors import build_envelope
from sglang_omni.entrypoints.http.transport.half_close import PROBE, HalfClosedGuard
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

# The parser buffers incomplete input, so it gets at most this much between size checks.
PARSE_CHUNK_BYTES = 64 << 10
# After an early error response the client may keep sending for a while. If the connection were
# closed at once, the client would see a reset instead of the response.
LINGER_S = 5.0
LINGER_BYTES = 128 << 20
# Requests that one connection may send before their responses.
MAX_PIPELINED = 16
# The colon, space and line end of a header.
HEADER_OVERHEAD_BYTES = 4
# The reason in the audit log for input that is not HTTP.
MALFORMED = "malformed_http"


class _ResponseTransport:
    """The transport of one response, with its own `close`."""

    def __init__(self, transport: asyncio.Transport, close: Callable[[], None]) -> None:
        self.write, self.close = transport.write, close
        self.is_closing, self.get_extra_info = transport.is_closing, transport.get_extra_info


class _ParsingStopped(Exception):
    """Raised from a parser callback to stop the parser."""


class SlowClientProtocol(HttpToolsProtocol):
    """One HTTP connection with limits on input and on unread output.

    `scope["state"]["arrived_at"]` is the monotonic time of a request's first byte.
    """

    limits: ClassVar[HttpOptions]
    slow_client_rules: ClassVar[SlowClientRules]

    @staticmethod
    def on_refusal(refusal: Refusal) -> None:
        """Handle a refusal that occurs before there is a request."""

    def connection_made(self, transport: Any) -> None:
        """Start the limits of a new connection, with no request yet."""
        super().connection_made(transport)
        self.slow_client_guard = SlowClientGuard(transport, self.slow_client_rules)
        # The running request. uvicorn keeps only the latest one, which may be queued behind it.
        self._running: Any = None
        self._error: OmniError | None = None
        # Whether the response has been sent and the rest of its request is discarded.
        self._is_discarding = False
        self._is_upgraded = self._is_in_body = False
        # Bytes since the parser last made progress, and bytes of the head parsed so far.
        self._pending_bytes = self._head_bytes = 0
        self._discarded_bytes = 0
        self._head_timer: asyncio.TimerHandle | None = None
        self._linger_timer: asyncio.TimerHandle | None = None
        self._half_closed: HalfClosedGuard | None = None
        self._start_head_timer()

    def connection_lost(self, exc: Exception | None) -> None:
        """Stop all timers, and tell the running request that its client is gone."""
        self.slow_client_guard.stop()
        self._stop_head_timer()
        self._stop_lingering()
        if self._half_closed is not None:
            self._half_closed.stop()
        self._disconnect_running()
        super().connection_lost(exc)

    def data_received(self, data: bytes) -> None:
        """Parse the bytes in pieces, or discard them after the last response."""
        if self._error is not None or self._is_discarding:
            self._discard_bytes(len(data))
            return
        for start in range(0, len(data), PARSE_CHUNK_BYTES):
            is_done = self._error is not None or self._is_discarding
            if self._is_upgraded or is_done or self.transport.is_closing():
                return
            self._parse(data[start : start + PARSE_CHUNK_BYTES])

    def _parse(self, chunk: bytes) -> None:
        if not self._is_in_body:
            self._start_head_timer()
        self._pending_bytes += len(chunk)
        super().data_received(chunk)
        if self._pending_bytes > self.limits.max_header_bytes and self._error is None:
            self._send_error(self._make_headers_error())

    def eof_received(self) -> bool:  # type: ignore[override]
        """Keep the connection open for the response to a request that has arrived completely."""
        cycle, running = self.cycle, self._running
        # A TLS transport closes in any case.
        if self.scheme == "https" or not self._has_pending_response() or cycle.more_body:
            return False
        cycle.keep_alive = False
        is_http_1_0 = running.scope["http_version"] == "1.0"
        if not (running.response_started or is_http_1_0):
            self.transport.write(PROBE)
        is_response_started = lambda: self._running.response_started  # noqa: E731
        self._half_closed = HalfClosedGuard(self.transport, is_response_started)
        return True

    def on_message_begin(self) -> None:
        """Note when the request arrived, and start the timer of its head."""
        super().on_message_begin()
        self.scope["state"]["arrived_at"] = time.monotonic()
        self._head_bytes = 0
        self._start_head_timer()

    def on_url(self, url: bytes) -> None:
        """Add a part of the URL. A URL that is too long ends the parsing."""
        super().on_url(url)
        if len(self.url) > self.limits.max_url_bytes:
            limit = self.limits.max_url_bytes
            self._stop_parsing(UrlTooLong(f"the URL is longer than {limit} bytes"))
        self._add_head_bytes(len(url))

    def on_header(self, name: bytes, value: bytes) -> None:
        """Add a header. A head that is too long ends the parsing."""
        super().on_header(name, value)
        self._add_head_bytes(len(name) + len(value) + HEADER_OVERHEAD_BYTES)

    def on_headers_complete(self) -> None:
        """Start the request, or reject it if too many are pipelined."""
        self._stop_head_timer()
        self._pending_bytes, self._is_in_body = 0, True
        if len(self.pipeline) >= MAX_PIPELINED:
            message = "too many pipelined requests; wait for earlier responses"
            self._stop_parsing(InvalidRequest(message))
        super().on_headers_complete()
        cycle: Any = self.cycle
        if cycle is not None:
            cycle.transport = _ResponseTransport(self.transport, self._close_after_response)

    def on_body(self, body: bytes) -> None:
        """Add a part of the body. It is discarded after the response."""
        self._pending_bytes = 0
        if self.cycle is not None and self.cycle.response_complete:
            self._discard_bytes(len(body))
        super().on_body(body)

    def on_message_complete(self) -> None:
        """End the request's body."""
        self._pending_bytes, self._is_in_body = 0, False
        self._stop_lingering()
        super().on_message_complete()

    def on_response_complete(self) -> None:
        """Start the next request, or discard the rest of this one's body."""
        super().on_response_complete()
        if self._is_in_body and self.cycle.response_complete:
            self._start_lingering()

    def _close_after_response(self) -> None:
        """Close the connection after a response, once the client can have read it.

        To close it while the client still sends its body would reset the connection, and the client
        could lose the response.
        """
        if not self._is_in_body:
            self.transport.close()
            return
        self._is_discarding = True
        if self.transport.can_write_eof():
            self.transport.write_eof()
        self._start_lingering()

    def handle_websocket_upgrade(self) -> None:
        """Hand the connection to a WebSocket, unless a response still needs it."""
        if self._has_pending_response():
            # The running response and the WebSocket would write to the same connection.
            message = "a WebSocket may start only after all earlier responses"
            self._send_error(InvalidRequest(message))
            return
        # A WebSocket session has its own limits on input and on unread output.
        self._is_upgraded = True
        self.slow_client_guard.stop()
        self.transport.set_write_buffer_limits()
        super().handle_websocket_upgrade()
        websocket: Any = self.transport.get_protocol()
        if not websocket.handshake_initiated:
            self._send_handshake_error(websocket)

    def _send_handshake_error(self, websocket: Any) -> None:
        """Answer an invalid WebSocket handshake; uvicorn would leave the connection open."""
        error = InvalidRequest("this is not a valid WebSocket handshake")
        self._report(error)
        response = b"".join(websocket.conn.data_to_send())
        default_headers = self.server_state.default_headers
        self.transport.write(response or encode_error_response(error, default_headers))
        self.transport.close()

    def send_400_response(self, msg: str) -> None:
        """Send the error that stopped the parser, or 400 for invalid HTTP."""
        self._send_error(self._error or InvalidRequest("this is not a valid HTTP/1.1 request"))

    def _add_head_bytes(self, num_bytes: int) -> None:
        self._head_bytes += num_bytes
        if self._head_bytes > self.limits.max_header_bytes:
            self._stop_parsing(self._make_headers_error())

    def _make_headers_error(self) -> HeadersTooLarge:
        limit = self.limits.max_header_bytes
        return HeadersTooLarge(f"the request line and headers are larger than {limit} bytes")

    def _stop_parsing(self, error: OmniError) -> None:
        """Raise from a parser callback; uvicorn then calls `send_400_response`."""
        self._error = error
        raise _ParsingStopped

    def _send_error(self, error: OmniError) -> None:
        """Send `error` unless a response has started, then close the connection gracefully."""
        self._error = error
        self._report(error)
        self._stop_head_timer()
        cycle = self.cycle
        if self._has_pending_response():
            if cycle.response_started or not cycle.more_body or self.pipeline:
                self._disconnect_running()
                self.transport.close()
                return
            # The application waits for the rest of this body, which is not read any more.
            self._disconnect_running()
        self.transport.write(encode_error_response(error, self.server_state.default_headers))
        if self.transport.can_write_eof():
            self.transport.write_eof()
        self._start_lingering()

    def _report(self, error: OmniError) -> None:
        client = parse_client_address(self.client)
        reason = get_reason(error) if is_audited(error) else MALFORMED
        route = ARRIVING if self._has_pending_response() else NO_ROUTE
        self.on_refusal(Refusal(error.status, reason, route, client=client))

    def _start_asgi_task(self, cycle: Any, app: Any) -> None:
        self._running = cycle
        super()._start_asgi_task(cycle, app)

    def _disconnect_running(self) -> None:
        """Tell the running request that its client disconnected.

        It then stops, and writes nothing to a closed connection.
        """
        if self._running is not None and not self._running.response_complete:
            self._running.disconnected = True
            self._running.waiting_for_100_continue = False
            self._running.message_event.set()

    def _has_pending_response(self) -> bool:
        return self.cycle is not None and not self.cycle.response_complete

    def _start_head_timer(self) -> None:
        if self._head_timer is None:
            seconds = self.limits.header_timeout
            self._head_timer = self.loop.call_later(seconds, self._on_head_timeout)

    def _stop_head_timer(self) -> None:
        if self._head_timer is not None:
            self._head_timer.cancel()
            self._head_timer = None

    def _on_head_timeout(self) -> None:
        self._head_timer = None
        if self._has_pending_response():
            # Some clients send a stray line end after a body, while they wait for the response.
            self._start_head_timer()
        elif self._pending_bytes:
            seconds = self.limits.header_timeout
            self._send_error(RequestTimeout(f"the headers did not arrive within {seconds:g} s"))
            # Such a slow client sends little, so there is no need to linger.
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

    def _discard_bytes(self, num_bytes: int) -> None:
        self._discarded_bytes += num_bytes
        if self._discarded_bytes > LINGER_BYTES:
            self.transport.abort()


def configure_protocol(
    slow_clients: SlowClientRules, http: HttpOptions, report: Callable[[Refusal], None]
) -> type[SlowClientProtocol]:
    """Return a protocol class with these limits; uvicorn makes an instance for each connection.

    `report` is called for each refusal that occurs before a request has arrived completely.
    """

    class ConfiguredProtocol(SlowClientProtocol):
        slow_client_rules, limits = slow_clients, http

        @staticmethod
        def on_refusal(refusal: Refusal) -> None:
            report(refusal)

    return ConfiguredProtocol


def encode_error_response(error: OmniError, headers: list[tuple[bytes, bytes]]) -> bytes:
    """Return the bytes of the response for `error`, the last one of its connection."""
    body = json.dumps(build_envelope(error)).encode()
    lines = [name + b": " + value for name, value in headers]
    lines += [
        b"content-type: application/json",
        b"content-length: %d" % len(body),
        b"connection: close",
    ]
    return STATUS_LINE[error.status] + b"\r\n".join(lines) + b"\r\n\r\n" + body
