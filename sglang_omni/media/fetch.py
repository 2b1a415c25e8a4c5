"""Fetch the bytes of media from data URIs, HTTP URLs, local files and uploads."""

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

# Base64 characters decoded per call. One call holds the GIL for less than 1 ms.
_SLICE_CHARS = 256 << 10
# The maximum number of characters before the comma of a data: URI.
_MAX_HEAD_CHARS = 1000


async def fetch_all(
    sources: Sequence[str | bytes], policy: FetchPolicy, tenant: str | None = None
) -> list[bytes]:
    """Return the files of one medium. Together they share the size and time limit of one file.

    Raises the errors of `fetch`.
    """
    files: list[bytes] = []
    bytes_left = policy.file_bytes
    try:
        async with asyncio.timeout(policy.seconds):
            for source in sources:
                files.append(await _fetch(source, replace(policy, file_bytes=bytes_left), tenant))
                bytes_left -= len(files[-1])
    except TimeoutError:
        message = f"the medium could not be fetched within {policy.seconds:g} s"
        raise InvalidRequest(message) from None
    return files


async def fetch(source: str | bytes, policy: FetchPolicy) -> bytes:
    """Return the bytes of a `data:`, `http:`, `https:` or `file:` URL, a path or an upload.

    Raises `InvalidRequest` if the policy or the remote server refuses. The message reveals nothing
    about this machine or its network.
    """
    (file,) = await fetch_all((source,), policy)
    return file


async def _fetch(source: str | bytes, policy: FetchPolicy, tenant: str | None) -> bytes:
    if isinstance(source, bytes):
        return _check_size(source, policy.file_bytes)
    # Only the start is searched, because `partition` copies what follows the colon.
    scheme = source[:_MAX_HEAD_CHARS].partition(":")[0].lower()
    if source.startswith("/") or scheme == "file":
        return await asyncio.to_thread(read_local, source, policy)
    if scheme == "data":
        if len(source) <= _SLICE_CHARS:
            return _decode_data_uri(source, policy.file_bytes)
        return await asyncio.to_thread(_decode_data_uri, source, policy.file_bytes)
    if scheme in ("http", "https"):
        return await download(source, policy, tenant)
    raise InvalidRequest("a medium must be a data: URI, an http(s) URL or an allowed local path")


def _decode_data_uri(source: str, max_bytes: int) -> bytes:
    """Decode `data:[type];base64,...`. Raises `InvalidRequest`, before decoding if possible."""
    # Works on offsets in the URI: copying what follows the comma would block the event loop.
    comma = source.find(",", 0, _MAX_HEAD_CHARS)
    if comma < 0 or not source[:comma].lower().endswith(";base64"):
        raise InvalidRequest("a data: URI must be of the form data:[type];base64,...")
    start = comma + 1
    if (len(source) - start) // 4 * 3 - 2 > max_bytes:
        raise InvalidRequest(f"the medium has more than {max_bytes} bytes")
    if source.find("=", start, max(start, len(source) - 2)) >= 0:
        raise InvalidRequest("the data: URI is not valid base64")
    parts = []
    for offset in range(start, len(source), _SLICE_CHARS):
        parts.append(_decode_base64(source[offset : offset + _SLICE_CHARS]))
        # Release the GIL to the event loop now, not after the interpreter's 5 ms interval.
        time.sleep(0)
    return _check_size(b"".join(parts), max_bytes)


def _decode_base64(text: str) -> bytes:
    try:
        return base64.b64decode(text, validate=True)
    except (binascii.Error, ValueError) as error:
        raise InvalidRequest("the data: URI is not valid base64") from error


def _check_size(data: bytes, max_bytes: int) -> bytes:
    if len(data) > max_bytes:
        raise InvalidRequest(f"the medium has more than {max_bytes} bytes")
    return data
