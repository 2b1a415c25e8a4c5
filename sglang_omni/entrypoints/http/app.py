"""The web application: the routes and middleware of a backend."""

from fastapi import FastAPI
from starlette.middleware.cors import CORSMiddleware

from sglang_omni.admission.rate_limit.limiter import RateLimiter
from sglang_omni.config.rate_limit_options import RateLimitOptions
from sglang_omni.entrypoints.backend import Backend
from sglang_omni.entrypoints.http import errors
from sglang_omni.entrypoints.http.documentation import routes as documentation
from sglang_omni.entrypoints.http.middleware.auth import Access, AuthMiddleware
from sglang_omni.entrypoints.http.middleware.drain import DrainMiddleware, InFlight
from sglang_omni.entrypoints.http.middleware.head import HeadMiddleware
from sglang_omni.entrypoints.http.middleware.rate_limit import LIMIT_HEADERS, RateLimitMiddleware
from sglang_omni.entrypoints.http.middleware.request_context import RequestContextMiddleware
from sglang_omni.entrypoints.http.openapi import document_keys
from sglang_omni.entrypoints.http.request_body.ignored_fields import IGNORED_FIELDS_HEADER
from sglang_omni.entrypoints.http.request_body.reader import BodyLimitMiddleware, BodyRules
from sglang_omni.entrypoints.http.routes import (
    admin,
    chat,
    completions,
    health,
    images,
    monitoring,
    normalize,
    responses,
    server_info,
    speech,
    speech_batch,
    speech_stream,
    stored_responses,
    tokenization,
    transcriptions,
    voices,
)
from sglang_omni.entrypoints.http.state_stores import StateStores, build_memory_stores
from sglang_omni.entrypoints.metered_backend import meter_tokens
from sglang_omni.entrypoints.playground import routes as playground
from sglang_omni.entrypoints.realtime import route as realtime
from sglang_omni.observability.event_loop import monitor_event_loop
from sglang_omni.observability.trace_recorder import TraceRecorder

# Response headers that pages of allowed origins may read.
EXPOSED_HEADERS = (
    *("X-Request-Id", "X-Sample-Rate", "X-Channels", IGNORED_FIELDS_HEADER),
    *("Retry-After", "retry-after-ms", *LIMIT_HEADERS),
)


def create_app(
    backend: Backend,
    access: Access | None = None,
    in_flight: InFlight | None = None,
    recorder: TraceRecorder | None = None,
    bodies: BodyRules | None = None,
    rate_limits: RateLimitOptions | None = None,
    stores: StateStores | None = None,
) -> FastAPI:
    """Return the OpenAI-compatible application of `backend`, which the caller starts and stops.

    Args:
        backend: The pipeline that serves the requests.
        access: Access rules. By default everybody has access.
        in_flight: Counter of the requests in flight.
        recorder: Recorder of traces and metrics.
        bodies: Limits on how bodies arrive.
        rate_limits: Limits of each key.
        stores: Keep what later requests refer to. By default this process does, in memory.
    """
    access = access or Access()
    recorder = recorder or TraceRecorder(lambda: backend.sample_rate)
    limiter = RateLimiter(rate_limits or RateLimitOptions())
    backend = meter_tokens(backend, limiter)
    app = FastAPI(
        title="sglang-omni",
        description=f"{backend.capabilities.name}: chat with pictures, sound and video, and "
        "streaming speech, in OpenAI's schema.",
        # FastAPI's own pages load scripts from another host.
        docs_url=None,
        redoc_url=None,
        lifespan=lambda app: monitor_event_loop(recorder.metrics.stalls.observe),
    )
    app.state.strict_fields = backend.strict_fields
    errors.install_error_handlers(app)
    stores = stores or build_memory_stores(backend.image_options)
    _include_routes(app, backend, recorder, stores)
    document_keys(app, access)
    # Added first, so innermost: a request whose body is still arriving does not delay a shutdown.
    app.add_middleware(
        DrainMiddleware, draining=backend.draining, in_flight=in_flight or InFlight()
    )
    app.add_middleware(
        BodyLimitMiddleware,
        max_body_bytes=backend.max_body_bytes,
        rules=bodies or BodyRules(),
        draining=backend.draining,
    )
    _add_middleware(app, access, recorder, limiter)
    return app


def _include_routes(
    app: FastAPI, backend: Backend, recorder: TraceRecorder, stores: StateStores
) -> None:
    app.include_router(chat.create_router(backend, stores.transcripts))
    app.include_router(responses.create_router(backend, stores.responses))
    app.include_router(stored_responses.create_router(stores.responses))
    app.include_router(completions.create_router(backend))
    app.include_router(tokenization.create_tokenize_router(backend))
    app.include_router(tokenization.create_detokenize_router(backend))
    app.include_router(speech.create_router(backend))
    app.include_router(speech_batch.create_router(backend))
    app.include_router(speech_stream.create_router(backend))
    app.webhooks.include_router(speech_stream.create_documentation_router())
    app.include_router(normalize.create_router(backend))
    app.include_router(transcriptions.create_router(backend))
    app.include_router(voices.create_router(backend))
    app.include_router(images.create_router(backend, stores.images))
    app.include_router(realtime.routes(backend, recorder))
    app.webhooks.include_router(realtime.documentation())
    app.include_router(health.create_model_router(backend))
    app.include_router(health.create_health_router(backend, stores.describe))
    app.include_router(server_info.create_router(backend))
    app.include_router(monitoring.create_router(backend, recorder))
    app.include_router(admin.create_router(backend))
    app.include_router(documentation.create_router())
    app.include_router(playground.routes())


def _add_middleware(
    app: FastAPI, access: Access, recorder: TraceRecorder, limiter: RateLimiter
) -> None:
    """Add the middleware that runs before a body is read. The last one added is the outermost."""
    if not limiter.options.is_unlimited:
        app.add_middleware(RateLimitMiddleware, limiter=limiter)
    app.add_middleware(AuthMiddleware, access=access)
    if access.origins:
        app.add_middleware(
            CORSMiddleware,
            allow_origins=access.origins,
            allow_methods=["GET", "HEAD", "POST", "DELETE"],
            # OpenAI's client sends a dozen headers of its own. The server uses no cookies.
            allow_headers=["*"],
            expose_headers=EXPOSED_HEADERS,
        )
    app.add_middleware(RequestContextMiddleware, recorder=recorder)
    app.add_middleware(HeadMiddleware)
