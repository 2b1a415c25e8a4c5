"""Ports for the rendezvous of tensor-parallel ranks."""

import errno
import socket
from collections.abc import Iterable
from pathlib import Path
from random import SystemRandom

LOOPBACK = "127.0.0.1"
EPHEMERAL_RANGE = Path("/proc/sys/net/ipv4/ip_local_port_range")
MIN_PORT = 10_000
"""Well-known services use the ports below."""
MAX_TRIES = 100


def find_rendezvous_port() -> int:
    """Return a port that is free now and when the ranks bind it, seconds later.

    The kernel may give a port of its ephemeral range to a connection in the meantime, so the port
    is drawn at random from below that range.

    Raises:
        OSError: `MAX_TRIES` ports in a row are taken.
    """
    random, end = SystemRandom(), read_ephemeral_start()
    return find_free_port(random.randrange(MIN_PORT, end) for _ in range(MAX_TRIES))


def read_ephemeral_start() -> int:
    """Return the first port that the kernel gives to outgoing connections."""
    return max(int(EPHEMERAL_RANGE.read_text().split()[0]), MIN_PORT + 1)


def find_free_port(ports: Iterable[int]) -> int:
    """Return the first of the ports that no socket on any address listens on.

    Raises:
        OSError: All ports are taken.
    """
    for port in ports:
        with socket.socket() as probe:
            try:
                probe.bind(("", port))
            except OSError as error:
                if error.errno != errno.EADDRINUSE:
                    raise
            else:
                return port
    raise OSError(errno.EADDRINUSE, "no free port for the rendezvous of the ranks")
