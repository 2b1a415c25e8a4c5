"""The speech route over a synthetic talker: the real HTTP application, pipeline, transport and
engine process, and no model.

    python -m benchmarks.synthetic_server --port 8001 --batch 128 --step-ms 3 --stream-ms 0.25
"""

import argparse
import asyncio
import os
from collections.abc import AsyncGenerator
from dataclasses import asdict, fields
from pathlib import Path
from typing import Any

import uvicorn

from benchmarks.synthetic_talker import SAMPLE_RATE, VOICE, SyntheticSettings
from sglang_omni.api.app import create_app
from sglang_omni.api.web import run, settle, web_server
from sglang_omni.config import RealtimeOptions
from sglang_omni.engine.process import EngineProcess, ProcessSpec
from sglang_omni.models.ming.text.front import warm_up
from sglang_omni.pipeline.request import ChatRequest, Event, SpeechRequest
from sglang_omni.pipeline.speech import speak

ROOT = Path(__file__).parents[1]


class SyntheticBackend:
    """A `Backend` that can only speak."""

    model = "ming-omni"
    sample_rate = SAMPLE_RATE
    voices = (VOICE,)
    default_voice = VOICE
    deterministic_text = False
    max_tokens = 1
    max_body_bytes = 1 << 20
    realtime = RealtimeOptions()

    def __init__(self, settings: SyntheticSettings, max_in_flight: int = 4096) -> None:
        factory = "benchmarks.synthetic_talker:open_worker"
        paths = {"PYTHONPATH": f"{ROOT}{os.pathsep}{os.environ.get('PYTHONPATH', '')}"}
        spec = ProcessSpec("talker", factory, settings, paths, max_in_flight=max_in_flight)
        self.talker = EngineProcess(spec)

    @property
    def ready(self) -> bool:
        """Whether the engine is up."""
        return self.talker.health.state == "ready"

    def engines(self) -> dict[str, dict[str, Any]]:
        """State and counters of the one engine."""
        return {"talker": asdict(self.talker.health)}

    def respond(self, request: ChatRequest) -> AsyncGenerator[Event, None]:
        """There is no thinker."""
        raise NotImplementedError("the synthetic server only speaks")

    def speak(self, request: SpeechRequest) -> AsyncGenerator[Event, None]:
        """Read a text aloud."""
        return speak(self.talker, request)


def server_of(backend: SyntheticBackend, port: int) -> uvicorn.Server:
    """The HTTP server over `backend`, on loopback."""
    return web_server(create_app(backend), "warning", grace_s=0, port=port)


async def serve(settings: SyntheticSettings, port: int) -> None:
    """Serve on loopback until interrupted."""
    backend = SyntheticBackend(settings)
    await asyncio.gather(backend.talker.start(), asyncio.to_thread(warm_up))
    settle()
    try:
        await server_of(backend, port).serve()
    finally:
        await backend.talker.stop()


def main() -> None:
    """Parse the command line and serve."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--port", type=int, default=8001)
    for entry in fields(SyntheticSettings):
        name = "--" + entry.name.replace("_", "-")
        parser.add_argument(name, type=type(entry.default), default=entry.default)
    arguments = vars(parser.parse_args())
    port = arguments.pop("port")
    run(serve(SyntheticSettings(**arguments), port))


if __name__ == "__main__":
    main()
