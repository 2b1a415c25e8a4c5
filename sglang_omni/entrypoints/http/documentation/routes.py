"""`/docs`: every operation, to read and to try, drawn by Swagger UI.

Swagger UI comes with the package `fastapi-offline`. No other host is asked for anything.
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
    # Swagger UI writes styles into its elements, and its own pictures into the stylesheet.
    "style-src 'self' 'unsafe-inline'",
    "img-src 'self' data:",
    # Audio that an operation answered with is played from memory.
    "media-src blob:",
    "connect-src 'self'",
    "base-uri 'none'",
    "form-action 'none'",
    "frame-ancestors 'none'",
)
HEADERS = {"Content-Security-Policy": "; ".join(CONTENT_SECURITY_POLICY)}


def read_page() -> dict[str, Asset]:
    """Return the files of the page and those of Swagger UI, by their names."""
    with as_file(files("fastapi_offline") / "static") as static:
        viewer = {name: read_asset(static / name) for name in SWAGGER_UI}
    return read_assets(FOLDER) | viewer


def create_router() -> APIRouter:
    """The page, which is read once, so that no name that is asked for becomes a path."""
    router = APIRouter(tags=["documentation"], include_in_schema=False)
    assets = read_page()

    @router.get(DOCS_PATH)
    async def documentation(request: Request) -> Response:
        """Every operation with its fields and examples, to read and to try."""
        return send_asset(assets[INDEX], request, HEADERS)

    @router.get(DOCS_PATH + "/{name}")
    async def documentation_file(name: str, request: Request) -> Response:
        """A file of that page."""
        if name not in assets:
            raise HTTPException(404, "Not Found")
        return send_asset(assets[name], request, HEADERS)

    return router
