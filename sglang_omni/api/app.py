"""The web application: routes over a backend."""

from fastapi import FastAPI

from sglang_omni.api import chat, errors, health, realtime, speech
from sglang_omni.api.backend import Backend
from sglang_omni.api.gate import Gate


def create_app(backend: Backend) -> FastAPI:
    """The OpenAI-compatible HTTP interface of `backend`. Starting and stopping it is not ours."""
    app = FastAPI(
        title="sglang-omni",
        description="Ming-flash-omni-2.0: chat with pictures, sound and video, and streaming "
        "speech, in OpenAI's schema.",
    )
    errors.install(app)
    app.include_router(chat.routes(backend))
    app.include_router(speech.routes(backend))
    app.include_router(realtime.routes(backend))
    app.webhooks.include_router(realtime.documentation())
    app.include_router(health.model_routes(backend))
    app.include_router(health.health_routes(backend))
    app.add_middleware(Gate, max_body_bytes=backend.max_body_bytes)
    return app
