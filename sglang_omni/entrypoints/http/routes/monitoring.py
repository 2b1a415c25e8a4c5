"""For those who run the server: metrics, and what happened to a request."""

import asyncio
import time
from typing import Any

from fastapi import APIRouter, Request, Response
from prometheus_client import CONTENT_TYPE_PLAIN_0_0_4, CollectorRegistry
from starlette.concurrency import run_in_threadpool

from sglang_omni.entrypoints.backend import Backend
from sglang_omni.entrypoints.http.errors import RESPONSES
from sglang_omni.entrypoints.http.openapi import success
from sglang_omni.observability.metrics import EngineCollector, exposition
from sglang_omni.observability.timeline import as_json
from sglang_omni.observability.trace_recorder import TraceRecorder
from sglang_omni.protocol.errors import RequestNotFound


def routes(backend: Backend, observer: TraceRecorder) -> APIRouter:
    """`/metrics` and `/v1/requests/{id}`."""
    router = APIRouter(tags=["watch"])
    engines = CollectorRegistry()
    engines.register(EngineCollector(lambda: backend.engines()))

    @router.get(
        "/metrics",
        response_class=Response,
        responses=success("Every series", CONTENT_TYPE_PLAIN_0_0_4),
    )
    async def metrics() -> Response:
        """Everything that is counted, in Prometheus' text format."""
        observer.metrics.tasks.set(len(asyncio.all_tasks()))
        ours = exposition(observer.metrics.registry, engines)
        # SGLang's numbers are in files.
        theirs = await run_in_threadpool(exposition, *backend.registries)
        return Response(ours + theirs, media_type=CONTENT_TYPE_PLAIN_0_0_4)

    @router.get("/v1/requests/{request_id}", responses=RESPONSES)
    async def timeline(request_id: str, request: Request) -> dict[str, Any]:
        """The stages of a request under way, or of one of the latest, with their times. Where keys
        are asked for, only its own key finds it."""
        trace = observer.find(request_id)
        state = request.state
        mine = trace is not None and (trace.tenant == state.tenant or state.is_admin)
        if trace is None or not mine or trace.id == state.request_id:
            raise RequestNotFound(f"no request {request_id[:64]!r} among the latest")
        return as_json(trace, time.monotonic())

    return router
