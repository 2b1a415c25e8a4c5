"""A check of the Host header against DNS rebinding.

A web page can make its own host name resolve to the loopback address, and then counts as a page of
this server. The Host header that the browser sends still has the page's name.
"""

import ipaddress

from starlette.datastructures import Headers

from sglang_omni.protocol.errors import Forbidden

LOOPBACK_HOSTS = frozenset({"localhost", "127.0.0.1", "[::1]"})
ANY_HOST = "*"


def require_host(headers: Headers, allowed: frozenset[str]) -> None:
    """Reject a request for a host that is not in `allowed`. If empty, or with "*", allow all.

    Raises `Forbidden`. A browser always sends the header; requests without it pass.
    """
    if not allowed or ANY_HOST in allowed:
        return
    for host in headers.getlist("host"):
        if parse_host_name(host) not in allowed:
            raise Forbidden(
                f"this server does not answer for the host {host[:100]!r}; "
                "start it with --allowed-host NAME to allow that name"
            )


def parse_host_name(host: str) -> str:
    """Return the name in a Host header, in lower case and without port and trailing dot.

    An IPv6 address keeps its brackets.
    """
    name = host.strip().lower()
    if not name.endswith("]"):
        before, colon, port = name.rpartition(":")
        name = before if colon and port.isdigit() else name
    return name.removesuffix(".")


def is_loopback(host: str) -> bool:
    """Return whether `host` is the loopback address."""
    try:
        address = ipaddress.ip_address(host)
    except ValueError:
        return host == "localhost"
    # ::ffff:127.0.0.1 is 127.0.0.1; `is_loopback` knows it only since Python 3.13.
    mapped = getattr(address, "ipv4_mapped", None)
    return (mapped or address).is_loopback
