"""Serves the playground at `/` and the files of its page.

The page needs no key and contains no secret: it loads its data from the other routes with the key
that the user types. It sends no request to another host, and runs no script but these files.
"""

from pathlib import Path

from fastapi import APIRouter, HTTPException, Request, Response
from fastapi.responses import HTMLResponse

from sglang_omni.entrypoints.http.assets import read_assets, send_asset
from sglang_omni.entrypoints.http.paths import PLAYGROUND_PREFIX

FOLDER = Path(__file__).parent / "page"
INDEX = "index.html"
# Attached images and recordings are shown from memory, by `blob:` URLs.
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
    "Permissions-Policy": "microphone=(self), camera=(self), geolocation=()",
}


def routes() -> APIRouter:
    """Return the routes of the page.

    The files are read once, so that no requested name is ever used as a path.
    """
    router = APIRouter(tags=["playground"])
    assets = read_assets(FOLDER)

    @router.get("/", response_class=HTMLResponse)
    async def page(request: Request) -> Response:
        """Return the playground: a page to chat, talk, synthesise speech, draw and clone voices."""
        return send_asset(assets[INDEX], request, HEADERS)

    @router.get(PLAYGROUND_PREFIX + "{name}", include_in_schema=False)
    async def file(name: str, request: Request) -> Response:
        """Return a file of the playground."""
        if name not in assets:
            raise HTTPException(404, "Not Found")
        return send_asset(assets[name], request, HEADERS)

    return router
