"""Admin routes. `AuthMiddleware` restricts them to administrators."""

import time
from typing import Any

from fastapi import APIRouter
from fastapi.responses import JSONResponse

from sglang_omni.entrypoints.backend import Backend
from sglang_omni.entrypoints.http.errors import RESPONSES
from sglang_omni.entrypoints.http.paths import ADMIN_PREFIX


def create_router(backend: Backend) -> APIRouter:
    """Return the routes `/admin/profile/{engine}/start` and `/stop`."""
    router = APIRouter(tags=["admin"], prefix=ADMIN_PREFIX.rstrip("/"))

    @router.post("/profile/{engine}/start", status_code=202, responses=RESPONSES)
    async def start_profile(engine: str) -> JSONResponse:
        """Start PyTorch's profiler in an engine, which runs more slowly until it is stopped.

        The response names the folder for the traces.
        """
        folder = backend.profile(engine, f"{engine}-{time.strftime('%Y%m%d-%H%M%S')}")
        return _accept({"engine": engine, "folder": folder})

    @router.post("/profile/{engine}/stop", status_code=202, responses=RESPONSES)
    async def stop_profile(engine: str) -> JSONResponse:
        """Stop the profiler of an engine, and write the traces."""
        backend.profile(engine, None)
        return _accept({"engine": engine})

    return router


def _accept(body: dict[str, Any]) -> JSONResponse:
    return JSONResponse(body, status_code=202)
