"""Detection of clients that disconnected after they half-closed the connection.

Some clients close their sending side after the request and wait for the response. Their FIN looks
the same as that of a client that disconnected. Only data sent to the client tells them apart: the
kernel of a disconnected client answers with a reset.
"""

import asyncio
from collections.abc import Callable

from sglang_omni.entrypoints.http.transport.slow_clients import read_tcp_info

# HTTP/1.1 clients accept and skip interim responses before the final one.
PROBE = b"HTTP/1.1 100 Continue\r\n\r\n"
CHECK_INTERVAL_S = 0.25
# A stream that is not stuck sends more often than once in this many checks.
MAX_SILENT_CHECKS = 2


class HalfClosedGuard:
    """Periodic check that aborts a half-closed connection once its client has disconnected.

    A client has disconnected if the connection was reset. Once the response has started
    (`is_response_started`), no interim response can be sent as a probe; then a response without
    progress for `MAX_SILENT_CHECKS` checks also counts as a disconnect.
    """

    def __init__(
        self, transport: asyncio.Transport, is_response_started: Callable[[], bool]
    ) -> None:
        self._transport, self._is_response_started = transport, is_response_started
        self._acked_bytes, self._silent_checks = -1, 0
        self._loop = asyncio.get_running_loop()
        self._timer = self._loop.call_later(CHECK_INTERVAL_S, self._check)

    def stop(self) -> None:
        """Stop the checks, because the connection is lost."""
        self._timer.cancel()

    def _check(self) -> None:
        info = read_tcp_info(self._transport)
        is_silent = self._is_response_started() and info.acked_bytes == self._acked_bytes
        self._silent_checks = self._silent_checks + 1 if is_silent else 0
        self._acked_bytes = info.acked_bytes
        if info.is_reset or self._silent_checks >= MAX_SILENT_CHECKS:
            self._transport.abort()
            return
        self._timer = self._loop.call_later(CHECK_INTERVAL_S, self._check)
