"""This machine's address towards another one, and the network interface that has it."""

import ipaddress
import socket

import psutil

from sglang_omni.protocol.errors import StartupError

# No packet is sent, so any port will do.
_PORT = 9


def find_local_address(peer: str, network: str | None) -> str:
    """Return the address of this machine from which packets go to `peer`.

    Raises:
        StartupError: It is not in `network`, such as 10.0.0.0/24.
        OSError: There is no way to `peer`.
    """
    family = socket.AF_INET6 if ":" in peer else socket.AF_INET
    with socket.socket(family, socket.SOCK_DGRAM) as probe:
        probe.connect((peer, _PORT))
        address = str(probe.getsockname()[0])
    if network and ipaddress.ip_address(address) not in ipaddress.ip_network(network):
        raise StartupError(
            f"the way to {peer} leads through this machine's address {address}, which is not in "
            f"cluster.bind {network}"
        )
    return address


def find_interface(peer: str) -> str:
    """Return the network interface of this machine from which packets go to `peer`.

    Raises:
        StartupError: No interface has the address that they come from.
        OSError: There is no way to `peer`.
    """
    address = find_local_address(peer, None)
    for name, addresses in psutil.net_if_addrs().items():
        if any(one.address.partition("%")[0] == address for one in addresses):
            return name
    raise StartupError(f"no network interface has the address {address}")
