"""The routes `/v1/models`, `/health` and `/ready`."""

import time
from collections.abc import Callable
from typing import Any

from fastapi import APIRouter, Request
from fastapi.responses import JSONResponse

from sglang_omni.entrypoints.backend import Backend
from sglang_omni.entrypoints.http.errors import RESPONSES
from sglang_omni.entrypoints.requests.metadata import require_model

Json = dict[str, Any]


def create_model_router(backend: Backend) -> APIRouter:
    """Return the routes of `/v1/models`."""
    router = APIRouter(tags=["models"])
    created = int(time.time())

    def build_model(name: str) -> Json:
        served = backend.model_names.find(name)
        return {
            "id": name,
            "object": "model",
            "created": created,
            "owned_by": "sglang-omni",
            "root": backend.model,
            "parent": None if served == name else served,
            "capabilities": backend.capabilities.public(),
        }

    @router.get("/v1/models")
    async def list_models() -> Json:
        """List the names of the one served model, and what its checkpoint can do.

        Its own names come first. `root` is the main name. An alias has the name that it stands for
        as its `parent`. OpenAI's names are known, too, but not listed.
        """
        listed = [build_model(name) for name in backend.model_names.listed]
        return {"object": "list", "data": listed}

    @router.get("/v1/models/{model_id:path}", responses=RESPONSES)
    async def retrieve_model(model_id: str) -> Json:
        """Return the served model by one of its names, which may contain slashes."""
        return build_model(require_model(model_id, backend))

    return router


def create_health_router(backend: Backend, describe_stores: Callable[[], Json]) -> APIRouter:
    """Return the routes `/health` and `/ready`, and their second names.

    `describe_stores` returns the fields about stores that servers share.
    """
    router = APIRouter(tags=["health"])

    def build_details(request: Request) -> Json:
        """Return the state of the engines and stores if the caller may see it."""
        if not request.state.is_trusted:
            return {}
        return {"engines": backend.engines(), **describe_stores()}

    @router.get("/ping", include_in_schema=False)
    @router.get("/health")
    async def health(request: Request) -> Json:
        """Return 200 while the API process runs, whatever the state of the engines.

        If the server requires keys, only requests with a key see the engines, and the
        state of a store that servers share. `/ping`, which some
        platforms ask for, is the same.
        """
        return {"status": "alive", **build_details(request)}

    @router.get("/health_generate", include_in_schema=False)
    @router.get("/ready", responses={503: {"description": "An engine is not ready"}})
    async def ready(request: Request) -> JSONResponse:
        """Return 200 if every engine has at least one loaded and warm replica, else 503.

        Also return 503 while the server drains. Media decoders count as down after all of them have
        failed to restart for 30 s. `/health_generate`, which SGLang's clients ask for, is the same:
        engines are probed all the time, so nothing is generated. A store that servers share does
        not count: text and speech need none.
        """
        status = "ready" if backend.ready else "not_ready"
        if backend.draining.is_set():
            status = "draining"
        body = {"status": status, **build_details(request)}
        return JSONResponse(body, status_code=200 if status == "ready" else 503)

    return router
