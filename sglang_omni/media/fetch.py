"""A medium as a request names it, to its bytes: data URIs, web addresses, files of this machine."""

import asyncio
import base64
import binascii
import time
from collections.abc import Sequence
from dataclasses import replace

from sglang_omni.media.local import read_local
from sglang_omni.media.policy import FetchPolicy
from sglang_omni.media.web import download
from sglang_omni.protocol.errors import InvalidRequest

__all__ = ["FetchPolicy", "fetch", "fetch_all"]

# Base64 characters decoded in one call, which holds the interpreter's lock for less than a ms.
_SLICE = 256 << 10
# Characters before the comma of a data: URI.
_MAX_HEAD = 1000


async def fetch_all(
    sources: Sequence[str | bytes], policy: FetchPolicy, tenant: str | None = None
) -> list[bytes]:
    """Return the files of one medium. Together they have what the policy grants to one file.

    Raises as `fetch` does.
    """
    files: list[bytes] = []
    left = policy.file_bytes
    try:
        async with asyncio.timeout(policy.seconds):
            for source in sources:
                files.append(await _fetch(source, replace(policy, file_bytes=left), tenant))
                left -= len(files[-1])
    except TimeoutError:
        message = f"the medium could not be fetched within {policy.seconds:g} s"
        raise InvalidRequest(message) from None
    return files


async def fetch(source: str | bytes, policy: FetchPolicy) -> bytes:
    """Return the bytes behind `data:`, `http:`, `https:`, `file:` or an absolute path; an uploaded
    file as it is.

    Raises `InvalidRequest` for whatever the policy or the other side refuses; the message tells
    nothing about this machine or its network.
    """
    (file,) = await fetch_all((source,), policy)
    return file


async def _fetch(source: str | bytes, policy: FetchPolicy, tenant: str | None) -> bytes:
    if isinstance(source, bytes):
        return _bounded(source, policy.file_bytes)
    # Not of all of it, which would copy what is behind the colon.
    scheme = source[:_MAX_HEAD].partition(":")[0].lower()
    if source.startswith("/") or scheme == "file":
        return await asyncio.to_thread(read_local, source, policy)
    if scheme == "data":
        if len(source) <= _SLICE:
            return _decode_data_uri(source, policy.file_bytes)
        return await asyncio.to_thread(_decode_data_uri, source, policy.file_bytes)
    if scheme in ("http", "https"):
        return await download(source, policy, tenant)
    raise InvalidRequest("a medium is a data: URI, an http(s) URL or an allowed local path")


def _decode_data_uri(source: str, most: int) -> bytes:
    """The bytes of `data:[type];base64,...`. Raises `InvalidRequest`, before decoding if it can."""
    # By places in the URI: a copy of what is behind its comma would hold up the event loop.
    comma = source.find(",", 0, _MAX_HEAD)
    if comma < 0 or not source[:comma].lower().endswith(";base64"):
        raise InvalidRequest("a data: URI must be of the form data:[type];base64,...")
    start = comma + 1
    if (len(source) - start) // 4 * 3 - 2 > most:
        raise InvalidRequest(f"the medium has more than {most} bytes")
    if source.find("=", start, max(start, len(source) - 2)) >= 0:
        raise InvalidRequest("the data: URI is not valid base64")
    parts = []
    for place in range(start, len(source), _SLICE):
        parts.append(_decode_base64(source[place : place + _SLICE]))
        # The event loop gets the lock now, not when the interpreter takes it away after 5 ms.
        time.sleep(0)
    return _bounded(b"".join(parts), most)


def _decode_base64(text: str) -> bytes:
    try:
        return base64.b64decode(text, validate=True)
    except (binascii.Error, ValueError) as error:
        raise InvalidRequest("the data: URI is not valid base64") from error


def _bounded(data: bytes, most: int) -> bytes:
    if len(data) > most:
        raise InvalidRequest(f"the medium has more than {most} bytes")
    return data
