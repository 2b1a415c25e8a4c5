"""Clients that end their sending side once they have asked, and wait for the answer.

They look like clients that went away: both send the same segment (FIN). Only what is sent to them
tells them apart: the system of one that went away resets the connection.
"""

import asyncio
from collections.abc import Callable

from sglang_omni.entrypoints.http.transport.slow_clients import read_tcp_info

# HTTP/1.1 clients take interim responses at any time before the final one, and skip them.
PROBE = b"HTTP/1.1 100 Continue\r\n\r\n"
PERIOD_S = 0.25
# Streams send more often than once in this many periods, unless they are stuck.
SILENT_PERIODS = 2


class HalfClosedWatch:
    """Aborts a connection whose client has gone, while it cannot be read from any more.

    It has gone once the connection is reset, or, as no interim response fits into an answer that
    `is_answering` says has begun, where that answer is silent for a while.
    """

    def __init__(self, transport: asyncio.Transport, is_answering: Callable[[], bool]) -> None:
        self._transport, self._is_answering = transport, is_answering
        self._acked_bytes, self._silent_periods = -1, 0
        self._loop = asyncio.get_running_loop()
        self._timer = self._loop.call_later(PERIOD_S, self._look)

    def stop(self) -> None:
        """Stop watching: the connection is lost."""
        self._timer.cancel()

    def _look(self) -> None:
        info = read_tcp_info(self._transport)
        is_silent = self._is_answering() and info.acked_bytes == self._acked_bytes
        self._silent_periods = self._silent_periods + 1 if is_silent else 0
        self._acked_bytes = info.acked_bytes
        if info.is_reset or self._silent_periods >= SILENT_PERIODS:
            self._transport.abort()
            return
        self._timer = self._loop.call_later(PERIOD_S, self._look)
