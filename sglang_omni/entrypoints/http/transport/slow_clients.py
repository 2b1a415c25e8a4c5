"""Limits on the bytes and the time that a client may leave a response unread.

Up to `max_unread_bytes` wait in the connection, so that a response that is generated faster than it
is read frees its engine slot early. Beyond that, this request alone pauses: the engine skips its
slot. The connection of a client that reads nothing at all is aborted, and its request is cancelled.
"""

import asyncio
import socket
import struct
from dataclasses import dataclass

# Offsets in the kernel's `struct tcp_info` of the state and of the acknowledged bytes.
_STATE_OFFSET = 0
_ACKED_FORMAT = struct.Struct("Q")
_ACKED_OFFSET = 120
_INFO_BYTES = 256
# The state of a connection that the peer has reset.
_TCP_CLOSE = 7
# Writing resumes after the client has read this much: often enough for slow readers.
_STEP_BYTES = 32 << 10


@dataclass(frozen=True)
class SlowClientRules:
    """Limits on unread data of one connection.

    Attributes:
        max_unread_bytes: Bytes that may wait for the client at once.
        stall_timeout_s: Seconds after which a client that reads nothing is disconnected.
    """

    max_unread_bytes: int = 2 << 20
    stall_timeout_s: float = 30.0


class SlowClientGuard:
    """Enforcement of `SlowClientRules` on one connection, until it is closed."""

    def __init__(self, transport: asyncio.Transport, rules: SlowClientRules) -> None:
        self._transport, self._rules = transport, rules
        self._acked_bytes: int | None = None
        low = max(0, rules.max_unread_bytes - _STEP_BYTES)
        transport.set_write_buffer_limits(high=rules.max_unread_bytes, low=low)
        self._loop = asyncio.get_running_loop()
        self._timer = self._loop.call_later(rules.stall_timeout_s, self._check)

    def stop(self) -> None:
        """Stop the checks, because the connection is lost or has another owner."""
        self._timer.cancel()

    def _check(self) -> None:
        has_unread = self._transport.get_write_buffer_size() > 0
        acked_bytes = read_tcp_info(self._transport).acked_bytes if has_unread else None
        if acked_bytes is not None and acked_bytes == self._acked_bytes:
            # `close` would wait for the client to read.
            self._transport.abort()
            return
        self._acked_bytes = acked_bytes
        self._timer = self._loop.call_later(self._rules.stall_timeout_s, self._check)


@dataclass(frozen=True)
class TcpInfo:
    """The kernel's view of a connection.

    `is_reset` says whether it has been reset; `acked_bytes` is how many bytes the client's kernel
    has acknowledged since the connection began.
    """

    is_reset: bool
    acked_bytes: int


def read_tcp_info(transport: asyncio.Transport) -> TcpInfo:
    """Return the kernel's `TCP_INFO` of the connection of `transport`."""
    tcp_socket: socket.socket = transport.get_extra_info("socket")
    info = tcp_socket.getsockopt(socket.IPPROTO_TCP, socket.TCP_INFO, _INFO_BYTES)
    (acked_bytes,) = _ACKED_FORMAT.unpack_from(info, _ACKED_OFFSET)
    return TcpInfo(info[_STATE_OFFSET] == _TCP_CLOSE, int(acked_bytes))
