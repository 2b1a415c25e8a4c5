"""Which hosts may be asked for a medium, and at which address: the defence against SSRF."""

import ipaddress

import httpx

from sglang_omni.media.policy import FetchPolicy
from sglang_omni.media.resolver import RESOLVER
from sglang_omni.protocol.errors import InvalidRequest

_DEFAULT_PORTS = {"http": 80, "https": 443}
_FIRST_USER_PORT = 1024
_UNICAST = ipaddress.ip_network("2000::/3")
# Forms of IPv6 address that lead to an IPv4 address inside: 6to4, Teredo. The others (mapped,
# compatible, NAT64) lie outside of 2000::/3.
_TUNNELS = (ipaddress.ip_network("2002::/16"), ipaddress.ip_network("2001::/32"))


async def checked_addresses(url: httpx.URL, policy: FetchPolicy, tenant: str | None) -> list[str]:
    """The addresses of a URL's host, in the resolver's order; all may be connected to.

    The caller must connect to one of them, not to the name: a second look-up might answer
    otherwise. Raises `InvalidRequest` for a URL the policy does not allow, a host that cannot be
    resolved, and one of whose addresses any is not public.
    """
    host, port = host_of(url), _port_of(url)
    _require_allowed(host, policy)
    addresses = await _resolve(host, port, tenant)
    private = f"{host}:{port}" in policy.private_hosts
    if not private and not all(is_public(address) for address in addresses):
        raise InvalidRequest("the URL leads to an address that is not public")
    return addresses


def host_of(url: httpx.URL) -> str:
    """The host as it is looked up and compared: ASCII, lower case, without a final dot."""
    return url.raw_host.decode("ascii").lower().rstrip(".")


def is_public(address: str) -> bool:
    """Whether a numeric address belongs to one machine of the public Internet.

    IPv6 forms that carry an IPv4 address count as not public, whatever they carry.
    """
    try:
        number = ipaddress.ip_address(address)
    except ValueError:
        return False  # Such as with a zone, which only link-local addresses have.
    if not number.is_global or number.is_multicast or number.is_reserved:
        return False
    if isinstance(number, ipaddress.IPv4Address):
        return True
    return number in _UNICAST and not any(number in tunnel for tunnel in _TUNNELS)


def _port_of(url: httpx.URL) -> int:
    if url.scheme not in _DEFAULT_PORTS:
        raise InvalidRequest("a medium is fetched by http or https only")
    if url.userinfo:
        raise InvalidRequest("a medium's URL must not carry a user name or password")
    port = _DEFAULT_PORTS[url.scheme] if url.port is None else url.port
    if port not in _DEFAULT_PORTS.values() and not _FIRST_USER_PORT <= port < 1 << 16:
        raise InvalidRequest(f"a medium is not fetched from port {port}")
    return port


def _require_allowed(host: str, policy: FetchPolicy) -> None:
    if not host:
        raise InvalidRequest("the URL names no host")
    domains = policy.allowed_domains
    below = any(domain.startswith(".") and host.endswith(domain) for domain in domains)
    if domains and host not in domains and not below:
        raise InvalidRequest(f"the host {host!r} is not allowed by this server")


async def _resolve(host: str, port: int, tenant: str | None) -> list[str]:
    try:
        return await RESOLVER.resolve(host, port, tenant)
    except (OSError, UnicodeError) as error:
        raise InvalidRequest(f"the host {host!r} cannot be resolved") from error
