"""The routes for metrics and for timelines of requests."""

import asyncio
import time
from typing import Any

from fastapi import APIRouter, Request, Response
from prometheus_client import CONTENT_TYPE_PLAIN_0_0_4, CollectorRegistry
from starlette.concurrency import run_in_threadpool

from sglang_omni.entrypoints.backend import Backend
from sglang_omni.entrypoints.http.errors import RESPONSES
from sglang_omni.entrypoints.http.openapi import document_success
from sglang_omni.observability.metrics import EngineCollector, render_metrics
from sglang_omni.observability.timeline import trace_to_dict
from sglang_omni.observability.trace import Trace
from sglang_omni.observability.trace_recorder import TraceRecorder
from sglang_omni.protocol.errors import RequestNotFound

# In place of an id.
LAST = "last"


def create_router(backend: Backend, recorder: TraceRecorder) -> APIRouter:
    """Return the routes `/metrics` and `/v1/requests/{id}`."""
    router = APIRouter(tags=["monitoring"])
    engine_registry = CollectorRegistry()
    engine_registry.register(EngineCollector(lambda: backend.engines()))

    @router.get(
        "/metrics",
        response_class=Response,
        responses=document_success("All metrics", CONTENT_TYPE_PLAIN_0_0_4),
    )
    async def metrics() -> Response:
        """Return all metrics in Prometheus' text format."""
        recorder.metrics.tasks.set(len(asyncio.all_tasks()))
        own_metrics = render_metrics(recorder.metrics.registry, engine_registry)
        # SGLang keeps its metrics in files, which are read in a thread.
        sglang_metrics = await run_in_threadpool(render_metrics, *backend.registries)
        return Response(own_metrics + sglang_metrics, media_type=CONTENT_TYPE_PLAIN_0_0_4)

    @router.get("/v1/requests/{request_id}", responses=RESPONSES)
    async def timeline(request_id: str, request: Request) -> dict[str, Any]:
        """Return the stages of a running or recent request with their times.

        `last` in place of an id is the latest answer that has ended. If the server requires keys,
        only the key of a request and administrators may see it.
        """
        state = request.state

        def is_visible(trace: Trace) -> bool:
            is_own = trace.tenant == state.tenant or state.is_admin
            return is_own and trace.id != state.request_id

        is_last = request_id == LAST
        trace = recorder.find_last(is_visible) if is_last else recorder.find(request_id, is_visible)
        if trace is None:
            raise RequestNotFound(f"no running or recent request {request_id[:64]!r}")
        return trace_to_dict(trace, time.monotonic())

    return router
