"""`/` and the files that its page is made of.

The page needs no key and holds no secret: what it shows comes from the other routes, by the key
that its user types. No other host is asked for anything, and no script but these files runs.
"""

from pathlib import Path

from fastapi import APIRouter, HTTPException, Request, Response
from fastapi.responses import HTMLResponse

from sglang_omni.entrypoints.http.assets import read_assets, send_asset
from sglang_omni.entrypoints.http.paths import PLAYGROUND_PREFIX

FOLDER = Path(__file__).parent / "page"
INDEX = "index.html"
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
}


def routes() -> APIRouter:
    """The page, which is read once, so that no name that is asked for becomes a path."""
    router = APIRouter(tags=["playground"])
    assets = read_assets(FOLDER)

    @router.get("/", response_class=HTMLResponse)
    async def page(request: Request) -> Response:
        """The playground: a page to type and talk in, to read aloud with, and to clone voices."""
        return send_asset(assets[INDEX], request, HEADERS)

    @router.get(PLAYGROUND_PREFIX + "{name}", include_in_schema=False)
    async def file(name: str, request: Request) -> Response:
        """A file of the playground."""
        if name not in assets:
            raise HTTPException(404, "Not Found")
        return send_asset(assets[name], request, HEADERS)

    return router
