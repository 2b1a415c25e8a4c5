"""Which names of the server a request may use, against DNS rebinding.

A web page can have its own name resolve to the loopback address, and then counts as a page of this
server. The name that the browser sends along (the Host header) gives it away.
"""

import ipaddress

from starlette.datastructures import Headers

from sglang_omni.protocol.errors import Forbidden

LOOPBACK_HOSTS = frozenset({"localhost", "127.0.0.1", "[::1]"})
ANY_HOST = "*"


def require_host(headers: Headers, allowed: frozenset[str]) -> None:
    """Refuse a request for a host that is not among `allowed`. Empty, or with "*", allows any.

    Raises `Forbidden`. Only programs leave the header out; they are let through.
    """
    if not allowed or ANY_HOST in allowed:
        return
    for host in headers.getlist("host"):
        if host_name(host) not in allowed:
            raise Forbidden(
                f"this server does not answer for the host {host[:100]!r}; "
                "start it with --allowed-host NAME to allow that name"
            )


def host_name(host: str) -> str:
    """Return the name in a Host header: in lower case, without port and final dot; an IPv6 address
    in its brackets."""
    name = host.strip().lower()
    if not name.endswith("]"):
        before, colon, port = name.rpartition(":")
        name = before if colon and port.isdigit() else name
    return name.removesuffix(".")


def is_loopback(host: str) -> bool:
    """Return whether only this machine can reach the host."""
    try:
        address = ipaddress.ip_address(host)
    except ValueError:
        return host == "localhost"
    # ::ffff:127.0.0.1 is 127.0.0.1, which Python has said only since 3.13.
    mapped = getattr(address, "ipv4_mapped", None)
    return (mapped or address).is_loopback
