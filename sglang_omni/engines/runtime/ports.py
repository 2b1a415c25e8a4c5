"""Where ranks meet."""

import errno
import socket
from collections.abc import Iterable
from pathlib import Path
from random import SystemRandom

LOOPBACK = "127.0.0.1"
EPHEMERAL_RANGE = Path("/proc/sys/net/ipv4/ip_local_port_range")
FIRST = 10_000
"""Well-known services lie below."""
TRIES = 100


def rendezvous_port() -> int:
    """A port that is free now and still will be when the ranks bind it, seconds later.

    The kernel hands a port of its ephemeral range to any connection meanwhile, so this one is
    drawn from below that range. Raises `OSError` when a hundred ports in a row are taken.
    """
    draw = SystemRandom()
    return first_free(draw.randrange(FIRST, ephemeral_start()) for _ in range(TRIES))


def ephemeral_start() -> int:
    """The first port that the kernel gives to outgoing connections."""
    return max(int(EPHEMERAL_RANGE.read_text().split()[0]), FIRST + 1)


def first_free(ports: Iterable[int]) -> int:
    """The first of the ports that no socket of any address listens on. Raises `OSError`."""
    for port in ports:
        with socket.socket() as probe:
            try:
                probe.bind(("", port))
            except OSError as error:
                if error.errno != errno.EADDRINUSE:
                    raise
            else:
                return port
    raise OSError(errno.EADDRINUSE, "no free port to meet at")
