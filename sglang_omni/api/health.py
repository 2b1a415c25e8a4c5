"""What the server is and how it fares: models, voices, `/health`, `/ready`."""

import time
from typing import Any

from fastapi import APIRouter
from fastapi.responses import JSONResponse

from sglang_omni.api.audio import require_model
from sglang_omni.api.backend import Backend
from sglang_omni.api.errors import RESPONSES


def model_routes(backend: Backend) -> APIRouter:
    """`/v1/models` and `/v1/audio/voices`."""
    router = APIRouter(tags=["models"])
    card = {
        "id": backend.model,
        "object": "model",
        "created": int(time.time()),
        "owned_by": "sglang-omni",
    }

    @router.get("/v1/models")
    async def list_models() -> dict[str, Any]:
        """The one model that this server serves."""
        return {"object": "list", "data": [card]}

    @router.get("/v1/models/{model_id:path}", responses=RESPONSES)
    async def retrieve_model(model_id: str) -> dict[str, Any]:
        """The served model, by name (which may contain slashes)."""
        require_model(model_id, backend)
        return card

    @router.get("/v1/audio/voices")
    async def list_voices() -> dict[str, Any]:
        """The preset voices."""
        return {"voices": list(backend.voices), "default_voice": backend.default_voice}

    return router


def health_routes(backend: Backend) -> APIRouter:
    """`/health` and `/ready`."""
    router = APIRouter(tags=["health"])

    @router.get("/health")
    async def health() -> dict[str, Any]:
        """The API process is alive, whatever the engines do."""
        return {"status": "alive", "engines": backend.engines()}

    @router.get("/ready", responses={503: {"description": "An engine is not ready"}})
    async def ready() -> JSONResponse:
        """200 once every engine is loaded and warm, 503 before, whenever one is down, and once the
        server drains."""
        status = "ready" if backend.ready else "not_ready"
        if backend.draining.is_set():
            status = "draining"
        body = {"status": status, "engines": backend.engines()}
        return JSONResponse(body, status_code=200 if status == "ready" else 503)

    return router
