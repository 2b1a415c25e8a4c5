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
from sglang_omni.observability.trace_recorder import TraceRecorder
from sglang_omni.protocol.errors import RequestNotFound


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

        If the server requires keys, only the key of that request and administrators may see it.
        """
        trace = recorder.find(request_id)
        state = request.state
        is_visible = trace is not None and (trace.tenant == state.tenant or state.is_admin)
        if trace is None or not is_visible or trace.id == state.request_id:
            raise RequestNotFound(f"no running or recent request {request_id[:64]!r}")
        return trace_to_dict(trace, time.monotonic())

    return router
