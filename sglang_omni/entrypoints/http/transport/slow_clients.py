"""One connection: what its client leaves unread is bounded, in bytes and in time.

Up to a budget of bytes waits in the connection, so that an answer that is made faster than it is
read leaves its slot early. Beyond it the request waits for its client, and only this one: its slot
in the engine is passed over. A client who takes nothing at all is cut off in the end, and its work
with it.
"""

import asyncio
import socket
import struct
from dataclasses import dataclass

# Where the kernel tells a connection's state, and how many bytes the other side has acknowledged
# (`struct tcp_info`).
_STATE_OFFSET = 0
_ACKED = struct.Struct("Q")
_ACKED_OFFSET = 120
_INFO_BYTES = 256
# The state of a connection that the other side has reset.
_TCP_CLOSE = 7
# Once stopped, writing goes on after this much has been read: often enough for slow readers.
_STEP_BYTES = 32 << 10


@dataclass(frozen=True)
class SlowClientRules:
    """`most_bytes` wait for a client at once; one that takes none of what waits for `patience_s`
    seconds is gone."""

    most_bytes: int = 2 << 20
    patience_s: float = 30.0


class SlowClientGuard:
    """Looks after the unread bytes of one connection, until it is closed."""

    def __init__(self, transport: asyncio.Transport, rules: SlowClientRules) -> None:
        self._transport, self._rules = transport, rules
        self._acked: int | None = None
        low = max(0, rules.most_bytes - _STEP_BYTES)
        transport.set_write_buffer_limits(high=rules.most_bytes, low=low)
        self._loop = asyncio.get_running_loop()
        self._timer = self._loop.call_later(rules.patience_s, self._look)

    def stop(self) -> None:
        """The connection is gone, or somebody else's."""
        self._timer.cancel()

    def _look(self) -> None:
        is_unread = self._transport.get_write_buffer_size()
        acked = read_tcp_info(self._transport).acked_bytes if is_unread else None
        if acked is not None and acked == self._acked:
            # Not closed: that would wait for the reader.
            self._transport.abort()
            return
        self._acked = acked
        self._timer = self._loop.call_later(self._rules.patience_s, self._look)


@dataclass(frozen=True)
class TcpInfo:
    """What the kernel knows of a connection: whether it has been reset, and how many bytes the
    client's system has taken since it began."""

    is_reset: bool
    acked_bytes: int


def read_tcp_info(transport: asyncio.Transport) -> TcpInfo:
    """Ask the kernel about the connection of `transport`."""
    end: socket.socket = transport.get_extra_info("socket")
    info = end.getsockopt(socket.IPPROTO_TCP, socket.TCP_INFO, _INFO_BYTES)
    (acked,) = _ACKED.unpack_from(info, _ACKED_OFFSET)
    return TcpInfo(info[_STATE_OFFSET] == _TCP_CLOSE, int(acked))
