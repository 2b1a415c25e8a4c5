"""The web application: routes over a backend."""

from fastapi import FastAPI

from sglang_omni.api import chat, errors, health, speech
from sglang_omni.api.backend import Backend
from sglang_omni.api.body import BodyLimit
from sglang_omni.api.drain import DrainLayer, InFlight
from sglang_omni.api.gate import Gate


def create_app(backend: Backend, in_flight: InFlight | None = None) -> FastAPI:
    """The OpenAI-compatible HTTP interface of `backend`. Starting and stopping it is not ours.

    `in_flight` counts what is being served.
    """
    app = FastAPI(
        title="sglang-omni",
        description="Ming-flash-omni-2.0: chat with pictures, sound and video, and streaming "
        "speech, in OpenAI's schema.",
    )
    errors.install(app)
    app.include_router(chat.routes(backend))
    app.include_router(speech.routes(backend))
    app.include_router(health.model_routes(backend))
    app.include_router(health.health_routes(backend))
    # The last one added is the outermost.
    app.add_middleware(BodyLimit, max_body_bytes=backend.max_body_bytes)
    app.add_middleware(DrainLayer, draining=backend.draining, in_flight=in_flight or InFlight())
    app.add_middleware(Gate)
    return app
