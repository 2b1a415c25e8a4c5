"""The routes of `/docs`: interactive API documentation by Swagger UI.

Swagger UI comes with the package `fastapi-offline`, so the page loads nothing from other hosts.
"""

from importlib.resources import as_file, files
from pathlib import Path

from fastapi import APIRouter, HTTPException, Request, Response

from sglang_omni.entrypoints.http.assets import Asset, read_asset, read_assets, send_asset
from sglang_omni.entrypoints.http.paths import DOCS_PATH

FOLDER = Path(__file__).parent / "page"
INDEX = "index.html"
SWAGGER_UI = ("swagger-ui.css", "swagger-ui-bundle.js")
CONTENT_SECURITY_POLICY = (
    "default-src 'none'",
    "script-src 'self'",
    # Swagger UI uses inline styles, and images as data URIs in its stylesheet.
    "style-src 'self' 'unsafe-inline'",
    "img-src 'self' data:",
    # Audio of a response is played from memory.
    "media-src blob:",
    "connect-src 'self'",
    "base-uri 'none'",
    "form-action 'none'",
    "frame-ancestors 'none'",
)
HEADERS = {"Content-Security-Policy": "; ".join(CONTENT_SECURITY_POLICY)}


def read_page() -> dict[str, Asset]:
    """Return the files of the page and of Swagger UI, by name."""
    with as_file(files("fastapi_offline") / "static") as static:
        swagger_ui = {name: read_asset(static / name) for name in SWAGGER_UI}
    return read_assets(FOLDER) | swagger_ui


def create_router() -> APIRouter:
    """Return the routes of the page.

    The files are read once; a requested name is never used as a path.
    """
    router = APIRouter(tags=["documentation"], include_in_schema=False)
    assets = read_page()

    @router.get(DOCS_PATH)
    async def documentation(request: Request) -> Response:
        """Return a page to read about and try every operation."""
        return send_asset(assets[INDEX], request, HEADERS)

    @router.get(DOCS_PATH + "/{name}")
    async def documentation_file(name: str, request: Request) -> Response:
        """Return a file of the documentation page."""
        if name not in assets:
            raise HTTPException(404, "Not Found")
        return send_asset(assets[name], request, HEADERS)

    return router
