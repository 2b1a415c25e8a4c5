"""Check hosts and addresses before media are downloaded, as a defence against SSRF."""

import ipaddress

import httpx

from sglang_omni.media.policy import FetchPolicy
from sglang_omni.media.resolver import RESOLVER
from sglang_omni.protocol.errors import InvalidRequest

_DEFAULT_PORTS = {"http": 80, "https": 443}
_FIRST_USER_PORT = 1024
_UNICAST = ipaddress.ip_network("2000::/3")
# IPv6 addresses that embed an IPv4 address: 6to4 and Teredo. The other forms (mapped, compatible,
# NAT64) are outside of 2000::/3.
_TUNNELS = (ipaddress.ip_network("2002::/16"), ipaddress.ip_network("2001::/32"))


async def resolve_allowed(url: httpx.URL, policy: FetchPolicy, tenant: str | None) -> list[str]:
    """Return the addresses of a URL's host that may be connected to, in the resolver's order.

    The caller must connect to one of these addresses and not to the name, because a second lookup
    may return another address. Raises `InvalidRequest` for a URL that the policy does not allow, a
    host that cannot be resolved, and a host with any address that is not public.
    """
    host, port = normalize_host(url), _check_port(url)
    _require_allowed(host, policy)
    addresses = await _resolve(host, port, tenant)
    is_private_allowed = f"{host}:{port}" in policy.private_hosts
    if not is_private_allowed and not all(is_public(address) for address in addresses):
        raise InvalidRequest("the URL leads to an address that is not public")
    return addresses


def normalize_host(url: httpx.URL) -> str:
    """Return the host as it is resolved and compared: ASCII, lower case, without a final dot."""
    return url.raw_host.decode("ascii").lower().rstrip(".")


def is_public(address: str) -> bool:
    """Return whether a numeric address is a public unicast address.

    IPv6 addresses that embed an IPv4 address are not public.
    """
    try:
        ip = ipaddress.ip_address(address)
    except ValueError:
        return False  # For example an address with a zone, which is link-local.
    if not ip.is_global or ip.is_multicast or ip.is_reserved:
        return False
    if isinstance(ip, ipaddress.IPv4Address):
        return True
    return ip in _UNICAST and not any(ip in tunnel for tunnel in _TUNNELS)


def _check_port(url: httpx.URL) -> int:
    if url.scheme not in _DEFAULT_PORTS:
        raise InvalidRequest("a medium's URL must have the scheme http or https")
    if url.userinfo:
        raise InvalidRequest("a medium's URL must not contain a user name or password")
    port = _DEFAULT_PORTS[url.scheme] if url.port is None else url.port
    if port not in _DEFAULT_PORTS.values() and not _FIRST_USER_PORT <= port < 1 << 16:
        raise InvalidRequest(f"media cannot be fetched from port {port}")
    return port


def _require_allowed(host: str, policy: FetchPolicy) -> None:
    if not host:
        raise InvalidRequest("the URL has no host")
    domains = policy.allowed_domains
    is_subdomain = any(domain.startswith(".") and host.endswith(domain) for domain in domains)
    if domains and host not in domains and not is_subdomain:
        raise InvalidRequest(f"the host {host!r} is not allowed by this server")


async def _resolve(host: str, port: int, tenant: str | None) -> list[str]:
    try:
        return await RESOLVER.resolve(host, port, tenant)
    except (OSError, UnicodeError) as error:
        raise InvalidRequest(f"the host {host!r} cannot be resolved") from error
