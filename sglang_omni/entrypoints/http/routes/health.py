"""What the server is and how it fares: models, `/health`, `/ready`."""

import time
from typing import Any

from fastapi import APIRouter, Request
from fastapi.responses import JSONResponse

from sglang_omni.entrypoints.backend import Backend
from sglang_omni.entrypoints.http.audio_output import require_model
from sglang_omni.entrypoints.http.errors import RESPONSES


def model_routes(backend: Backend) -> APIRouter:
    """`/v1/models`."""
    router = APIRouter(tags=["models"])
    created = int(time.time())

    def card() -> dict[str, Any]:
        return {
            "id": backend.model,
            "object": "model",
            "created": created,
            "owned_by": "sglang-omni",
            "capabilities": backend.capabilities.public(),
        }

    @router.get("/v1/models")
    async def list_models() -> dict[str, Any]:
        """The one model that this server serves, and what its checkpoint can do."""
        return {"object": "list", "data": [card()]}

    @router.get("/v1/models/{model_id:path}", responses=RESPONSES)
    async def retrieve_model(model_id: str) -> dict[str, Any]:
        """The served model, by name (which may contain slashes)."""
        require_model(model_id, backend)
        return card()

    return router


def health_routes(backend: Backend) -> APIRouter:
    """`/health` and `/ready`."""
    router = APIRouter(tags=["health"])

    def seen_by(request: Request) -> dict[str, Any]:
        """The engines, for whoever may know of them."""
        return {"engines": backend.engines()} if request.state.is_trusted else {}

    @router.get("/health")
    async def health(request: Request) -> dict[str, Any]:
        """The API process is alive, whatever the engines do. Where keys are asked for, only their
        owners see the engines."""
        return {"status": "alive", **seen_by(request)}

    @router.get("/ready", responses={503: {"description": "An engine is not ready"}})
    async def ready(request: Request) -> JSONResponse:
        """200 once every engine is loaded and warm, 503 before, whenever one is down with all of
        its replicas, and once the server drains. Decoders of files count as down once all have
        failed to restart for 30 s."""
        status = "ready" if backend.ready else "not_ready"
        if backend.draining.is_set():
            status = "draining"
        body = {"status": status, **seen_by(request)}
        return JSONResponse(body, status_code=200 if status == "ready" else 503)

    return router
