"""Files of web pages, read once and sent with headers that isolate them from other sites."""

import hashlib
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from fastapi import Request, Response

MEDIA_TYPES = {
    ".html": "text/html; charset=utf-8",
    ".js": "text/javascript; charset=utf-8",
    ".css": "text/css; charset=utf-8",
    ".svg": "image/svg+xml",
}
HEADERS = {
    "Cross-Origin-Opener-Policy": "same-origin",
    "Cross-Origin-Resource-Policy": "same-origin",
    "Referrer-Policy": "no-referrer",
    "X-Content-Type-Options": "nosniff",
    # Revalidate each time, because a new version of the server has a new page.
    "Cache-Control": "no-cache",
}


@dataclass(frozen=True)
class Asset:
    """The content and headers of a file. `etag` changes with the content."""

    data: bytes
    media_type: str
    etag: str


def read_assets(folder: Path) -> dict[str, Asset]:
    """Return the files of a page in `folder`, by name."""
    return {path.name: read_asset(path) for path in folder.iterdir() if path.suffix in MEDIA_TYPES}


def read_asset(path: Path) -> Asset:
    """Return one file, whose suffix is in `MEDIA_TYPES`."""
    data = path.read_bytes()
    etag = f'"{hashlib.blake2b(data, digest_size=16).hexdigest()}"'
    return Asset(data, MEDIA_TYPES[path.suffix], etag)


def send_asset(asset: Asset, request: Request, headers: Mapping[str, str]) -> Response:
    """Return a response with a file and `headers`, or 304 if the browser has the file."""
    headers = {**HEADERS, **headers, "ETag": asset.etag}
    if request.headers.get("if-none-match") == asset.etag:
        return Response(status_code=304, headers=headers)
    return Response(asset.data, media_type=asset.media_type, headers=headers)
