"""Nodes are found by name, address or host name; a way to them leads through the right network."""

from typing import Any

import pytest

from sglang_omni.engines.remote.ray_nodes import find_node
from sglang_omni.engines.runtime.local_address import find_local_address
from sglang_omni.protocol.errors import StartupError


def node(name: str, address: str, host: str = "vm", alive: bool = True) -> dict[str, Any]:
    return {
        "NodeName": name,
        "NodeManagerAddress": address,
        "NodeManagerHostname": host,
        "Alive": alive,
    }


NODES = [
    node("a", "10.0.0.1"),
    node("b", "10.0.0.2", alive=False),
    node("b", "10.0.0.3"),
    node("c", "10.0.0.4", host="gpu-4"),
]


@pytest.mark.parametrize(
    ("name", "index"), [("a", 0), ("b", 2), ("10.0.0.1", 0), ("gpu-4", 3), ("10.0.0.4", 3)]
)
def test_a_living_node_is_found(name: str, index: int) -> None:
    assert find_node(name, NODES) == index


@pytest.mark.parametrize("name", ["d", "10.0.0.2", ""])
def test_an_unknown_node_is_named_with_those_that_there_are(name: str) -> None:
    with pytest.raises(StartupError, match="its nodes: a, b, c"):
        find_node(name, NODES)


def test_a_name_of_two_nodes_is_ambiguous() -> None:
    with pytest.raises(StartupError, match="2 nodes 'vm'"):
        find_node("vm", NODES)


def test_the_address_is_that_of_the_way() -> None:
    assert find_local_address("127.0.0.1", None) == "127.0.0.1"
    assert find_local_address("127.0.0.1", "127.0.0.0/8") == "127.0.0.1"
    assert find_local_address("::1", None) == "::1"


def test_another_network_is_rejected() -> None:
    with pytest.raises(StartupError, match=r"not in cluster\.bind 10\.0\.0\.0/24"):
        find_local_address("127.0.0.1", "10.0.0.0/24")
