"""Download media over HTTP, and check each redirect."""

import functools
import ssl
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import httpx

from sglang_omni.media.hosts import normalize_host, resolve_allowed
from sglang_omni.media.policy import FetchPolicy
from sglang_omni.protocol.errors import InvalidRequest

_REDIRECTS = (301, 302, 303, 307, 308)


async def download(source: str, policy: FetchPolicy, tenant: str | None) -> bytes:
    """Return the body of an http(s) URL. Each redirect is checked like the first URL.

    The caller sets the deadline. Raises `InvalidRequest`.
    """
    try:
        url = httpx.URL(source)
        for _ in range(policy.max_redirects + 1):
            async with _get(url, policy, tenant) as response:
                if response.status_code not in _REDIRECTS:
                    return await _read_body(response, policy.file_bytes)
                url = url.join(response.headers.get("location", ""))
    except (httpx.InvalidURL, UnicodeError) as error:
        raise InvalidRequest("the URL of the medium is malformed") from error
    except httpx.HTTPError as error:
        raise InvalidRequest(
            "the medium's server cannot be reached or closed the connection"
        ) from error
    raise InvalidRequest(f"the URL redirects more than {policy.max_redirects} times")


@asynccontextmanager
async def _get(
    url: httpx.URL, policy: FetchPolicy, tenant: str | None
) -> AsyncIterator[httpx.Response]:
    addresses = await resolve_allowed(url, policy, tenant)
    # The environment is ignored: a proxy would resolve the name again.
    async with httpx.AsyncClient(verify=_tls_context(), trust_env=False, timeout=None) as client:
        response = await _send(client, url, addresses)
        try:
            yield response
        finally:
            await response.aclose()


async def _send(client: httpx.AsyncClient, url: httpx.URL, addresses: list[str]) -> httpx.Response:
    """Send the request to the first address that accepts the connection."""
    for address in addresses[:-1]:
        try:
            return await client.send(_pinned_request(client, url, address), stream=True)
        except httpx.ConnectError:
            continue
    return await client.send(_pinned_request(client, url, addresses[-1]), stream=True)


def _pinned_request(client: httpx.AsyncClient, url: httpx.URL, address: str) -> httpx.Request:
    """Build a request to `address` with the URL's host name in its header and for TLS."""
    return client.build_request(
        "GET",
        url.copy_with(host=address),
        headers={"host": url.netloc.decode("ascii"), "accept-encoding": "identity"},
        extensions={"sni_hostname": normalize_host(url)},
    )


async def _read_body(response: httpx.Response, max_bytes: int) -> bytes:
    """Read a response up to `max_bytes`, whatever length it declares."""
    if response.status_code != httpx.codes.OK:
        raise InvalidRequest(f"the medium's server responded with status {response.status_code}")
    if response.headers.get("content-encoding", "identity").lower() != "identity":
        raise InvalidRequest("the medium's server sent a compressed response, not as requested")
    if int(response.headers.get("content-length", 0)) > max_bytes:
        raise InvalidRequest(f"the medium has more than {max_bytes} bytes")
    data = bytearray()
    async for chunk in response.aiter_raw():
        data += chunk
        if len(data) > max_bytes:
            raise InvalidRequest(f"the medium has more than {max_bytes} bytes")
    return bytes(data)


@functools.cache
def _tls_context() -> ssl.SSLContext:
    """Return the TLS context, which verifies certificates and host names.

    It is created once because it loads hundreds of certificates.
    """
    return httpx.create_ssl_context(trust_env=False)
