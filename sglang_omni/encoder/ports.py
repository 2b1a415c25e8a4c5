"""Where ranks meet."""

import socket

LOOPBACK = "127.0.0.1"


def free_port() -> int:
    """A loopback port that is free now."""
    with socket.socket() as probe:
        probe.bind((LOOPBACK, 0))
        return int(probe.getsockname()[1])
