"""What administrators do. `AccessLayer` lets nobody else come here."""

import time
from typing import Any

from fastapi import APIRouter
from fastapi.responses import JSONResponse

from sglang_omni.entrypoints.backend import Backend
from sglang_omni.entrypoints.http.errors import RESPONSES
from sglang_omni.entrypoints.http.paths import ADMIN_PREFIX


def routes(backend: Backend) -> APIRouter:
    """`/admin/profile/{engine}/start` and `/stop`."""
    router = APIRouter(tags=["admin"], prefix=ADMIN_PREFIX.rstrip("/"))

    @router.post("/profile/{engine}/start", status_code=202, responses=RESPONSES)
    async def start_profile(engine: str) -> JSONResponse:
        """Begin to profile an engine with PyTorch's profiler; the answer names the folder that the
        traces will be written to. It costs speed until it is stopped."""
        folder = backend.profile(engine, f"{engine}-{time.strftime('%Y%m%d-%H%M%S')}")
        return _accepted({"engine": engine, "folder": folder})

    @router.post("/profile/{engine}/stop", status_code=202, responses=RESPONSES)
    async def stop_profile(engine: str) -> JSONResponse:
        """End it, and have the traces written."""
        backend.profile(engine, None)
        return _accepted({"engine": engine})

    return router


def _accepted(body: dict[str, Any]) -> JSONResponse:
    return JSONResponse(body, status_code=202)
