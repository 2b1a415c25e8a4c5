"""Where ranks meet: a port that no connection of somebody else's takes meanwhile."""

import socket

import pytest

from sglang_omni.engines.runtime.ports import (
    find_free_port,
    find_rendezvous_port,
    read_ephemeral_start,
)


def test_the_kernel_gives_the_port_to_no_outgoing_connection() -> None:
    with socket.create_server(("127.0.0.1", 0)) as given:
        assert find_rendezvous_port() < read_ephemeral_start() <= given.getsockname()[1]


@pytest.mark.parametrize("address", ["127.0.0.1", ""])
def test_a_port_that_somebody_listens_on_is_passed_over(address: str) -> None:
    with socket.create_server((address, 0)) as taken:
        free = find_rendezvous_port()
        assert find_free_port((taken.getsockname()[1], free)) == free


def test_no_free_port_at_all_is_an_error() -> None:
    with (
        socket.create_server(("127.0.0.1", 0)) as taken,
        pytest.raises(OSError, match="no free port"),
    ):
        find_free_port([taken.getsockname()[1]])
