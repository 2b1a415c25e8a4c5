"""`/` and the files that its page is made of.

The page needs no key and holds no secret: what it shows comes from the other routes, by the key
that its user types. No other host is asked for anything, and no script but these files runs.
"""

import hashlib
from dataclasses import dataclass
from pathlib import Path

from fastapi import APIRouter, HTTPException, Request, Response

from sglang_omni.api.paths import PLAYGROUND

FOLDER = Path(__file__).parent / "page"
INDEX = "index.html"
MEDIA_TYPES = {
    ".html": "text/html; charset=utf-8",
    ".js": "text/javascript; charset=utf-8",
    ".css": "text/css; charset=utf-8",
    ".svg": "image/svg+xml",
}
# Pictures and recordings that the user attaches are shown from memory, as `blob:`.
POLICY = (
    "default-src 'none'",
    "script-src 'self'",
    "style-src 'self'",
    "connect-src 'self'",
    "img-src 'self' blob:",
    "media-src blob:",
    "base-uri 'none'",
    "form-action 'none'",
    "frame-ancestors 'none'",
    "require-trusted-types-for 'script'",
    "trusted-types 'none'",
)
HEADERS = {
    "Content-Security-Policy": "; ".join(POLICY),
    "Permissions-Policy": "microphone=(self), camera=(), geolocation=()",
    "Cross-Origin-Opener-Policy": "same-origin",
    "Cross-Origin-Resource-Policy": "same-origin",
    "Referrer-Policy": "no-referrer",
    "X-Content-Type-Options": "nosniff",
    # Asked for again each time: a new server brings a new page.
    "Cache-Control": "no-cache",
}


@dataclass(frozen=True)
class Asset:
    """A file as it is sent. `etag` changes with its content."""

    data: bytes
    media_type: str
    etag: str


def read_assets(folder: Path = FOLDER) -> dict[str, Asset]:
    """Every file of the page, by its name."""
    return {path.name: _asset(path) for path in folder.iterdir() if path.suffix in MEDIA_TYPES}


def _asset(path: Path) -> Asset:
    data = path.read_bytes()
    etag = f'"{hashlib.blake2b(data, digest_size=16).hexdigest()}"'
    return Asset(data, MEDIA_TYPES[path.suffix], etag)


def reply(asset: Asset, request: Request) -> Response:
    """The file, or that the browser has it already."""
    headers = {**HEADERS, "ETag": asset.etag}
    if request.headers.get("if-none-match") == asset.etag:
        return Response(status_code=304, headers=headers)
    return Response(asset.data, media_type=asset.media_type, headers=headers)


def routes() -> APIRouter:
    """The page, which is read once, so that no name that is asked for becomes a path."""
    router = APIRouter(tags=["playground"], include_in_schema=False)
    assets = read_assets()

    @router.get("/")
    async def page(request: Request) -> Response:
        """The playground: a page to type and talk in, to read aloud with, and to clone voices."""
        return reply(assets[INDEX], request)

    @router.get(PLAYGROUND + "{name}")
    async def file(name: str, request: Request) -> Response:
        """A file of the playground."""
        if name not in assets:
            raise HTTPException(404, "Not Found")
        return reply(assets[name], request)

    return router
