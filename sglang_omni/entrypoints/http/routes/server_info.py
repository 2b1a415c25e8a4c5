"""The routes that gateways read: version, model, server and load."""

import time
from datetime import UTC, datetime
from typing import Annotated, Any, Literal

from fastapi import APIRouter, Query
from pydantic import AfterValidator
from pydantic_core import PydanticCustomError

from sglang_omni.entrypoints.backend import Backend
from sglang_omni.entrypoints.http.errors import RESPONSES
from sglang_omni.entrypoints.server_info import (
    build_legacy_load,
    build_loads,
    build_model_info,
    build_server_info,
)
from sglang_omni.version import package_version

# SGLang's sections of a load. This server has only the core, as SGLang without other features.
SECTIONS = frozenset(("core", "memory", "spec", "lora", "disagg", "queues", "all"))


def _check_sections(include: str) -> str:
    if not {section.strip() for section in include.split(",")} <= SECTIONS:
        raise PydanticCustomError(
            "include", "must be sections of {names}", {"names": ", ".join(sorted(SECTIONS))}
        )
    return include


def create_router(backend: Backend) -> APIRouter:
    """Return the routes of `backend`, in SGLang's form. All but `/version` need a key."""
    router = APIRouter(tags=["monitoring"])

    @router.get("/version")
    async def get_version() -> dict[str, str]:
        """Return the version of the server. It needs no key."""
        return {"version": package_version()}

    @router.get("/get_server_info", include_in_schema=False)
    @router.get("/server_info", responses=RESPONSES)
    async def get_server_info() -> dict[str, Any]:
        """Return versions, limits and the load of the thinker, as SGLang does."""
        return build_server_info(backend)

    @router.get("/get_model_info", include_in_schema=False)
    @router.get("/model_info", responses=RESPONSES)
    async def get_model_info() -> dict[str, Any]:
        """Return what the model understands, as SGLang does; paths are the served name."""
        return build_model_info(backend)

    @router.get("/v1/loads", responses=RESPONSES)
    async def get_loads(
        dp_rank: Annotated[int | None, Query(description="The replica; unset: all")] = None,
        include: Annotated[
            str | None,
            AfterValidator(lambda include: include and _check_sections(include)),
            Query(description="SGLang's sections, of which there is only `core`"),
        ] = None,
        format: Annotated[
            Literal["json"], Query(description="`/metrics` has Prometheus' format")
        ] = "json",
    ) -> dict[str, Any]:
        """Return the load of each replica of the thinker, as SGLang does.

        Requests in the server's queue count as waiting of the first replica.
        """
        loads = build_loads(backend.engines())
        return {
            "timestamp": datetime.now(UTC).isoformat(),
            "version": package_version(),
            "loads": [load for load in loads if dp_rank in (None, load["dp_rank"])],
        }

    @router.get("/get_load", include_in_schema=False)
    async def get_load() -> list[dict[str, Any]]:
        """Return the load of each replica in the form of SGLang's former route."""
        now_s = time.perf_counter()
        return [build_legacy_load(load, now_s) for load in build_loads(backend.engines())]

    return router
