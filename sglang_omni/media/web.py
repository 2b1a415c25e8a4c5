"""Downloads over HTTP, one checked hop at a time."""

import functools
import ssl
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import httpx

from sglang_omni.media.hosts import checked_addresses, host_of
from sglang_omni.media.policy import FetchPolicy
from sglang_omni.protocol.errors import InvalidRequest

_REDIRECTS = (301, 302, 303, 307, 308)


async def download(source: str, policy: FetchPolicy, tenant: str | None) -> bytes:
    """Return the body behind an http(s) URL. Every redirect is checked like the first address.

    Takes its time; the caller sets the deadline. Raises `InvalidRequest`.
    """
    try:
        url = httpx.URL(source)
        for _ in range(policy.max_redirects + 1):
            async with _get(url, policy, tenant) as response:
                if response.status_code not in _REDIRECTS:
                    return await _body(response, policy.file_bytes)
                url = url.join(response.headers.get("location", ""))
    except (httpx.InvalidURL, UnicodeError) as error:
        raise InvalidRequest("the URL of the medium is malformed") from error
    except httpx.HTTPError as error:
        raise InvalidRequest("the medium's server cannot be reached or broke off") from error
    raise InvalidRequest(f"the URL redirects more than {policy.max_redirects} times")


@asynccontextmanager
async def _get(
    url: httpx.URL, policy: FetchPolicy, tenant: str | None
) -> AsyncIterator[httpx.Response]:
    addresses = await checked_addresses(url, policy, tenant)
    # Nothing of this machine's environment: a proxy would look the name up again.
    async with httpx.AsyncClient(verify=_tls(), trust_env=False, timeout=None) as client:
        response = await _ask(client, url, addresses)
        try:
            yield response
        finally:
            await response.aclose()


async def _ask(client: httpx.AsyncClient, url: httpx.URL, addresses: list[str]) -> httpx.Response:
    """Send the request to the first address that takes the connection."""
    for address in addresses[:-1]:
        try:
            return await client.send(_pinned(client, url, address), stream=True)
        except httpx.ConnectError:
            continue
    return await client.send(_pinned(client, url, addresses[-1]), stream=True)


def _pinned(client: httpx.AsyncClient, url: httpx.URL, address: str) -> httpx.Request:
    """A request to an address that still asks for, and in TLS insists on, the host's name."""
    return client.build_request(
        "GET",
        url.copy_with(host=address),
        headers={"host": url.netloc.decode("ascii"), "accept-encoding": "identity"},
        extensions={"sni_hostname": host_of(url)},
    )


async def _body(response: httpx.Response, most: int) -> bytes:
    """Read an answer up to its limit, whatever length it announced."""
    if response.status_code != httpx.codes.OK:
        raise InvalidRequest(f"the medium's server answered {response.status_code}")
    if response.headers.get("content-encoding", "identity").lower() != "identity":
        raise InvalidRequest("the medium's server compressed its answer without being asked")
    if int(response.headers.get("content-length", 0)) > most:
        raise InvalidRequest(f"the medium has more than {most} bytes")
    data = bytearray()
    async for chunk in response.aiter_raw():
        data += chunk
        if len(data) > most:
            raise InvalidRequest(f"the medium has more than {most} bytes")
    return bytes(data)


@functools.cache
def _tls() -> ssl.SSLContext:
    """Verifies certificates and names; made once, for it reads hundreds of certificates."""
    return httpx.create_ssl_context(trust_env=False)
