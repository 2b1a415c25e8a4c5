"""The speech route over a synthetic talker.

    python -m benchmarks.synthetic.server --port 8001 --batch 128 --step-ms 3 --stream-ms 0.25

HTTP application, pipeline, transport and engine process are the real ones; there is no model.
"""

import argparse
import asyncio
import os
from collections.abc import AsyncGenerator, Mapping
from contextlib import aclosing
from dataclasses import asdict, fields
from pathlib import Path
from types import MappingProxyType
from typing import Any

import uvicorn

from benchmarks.synthetic.talker import PATCH_SAMPLES, SAMPLE_RATE, VOICE, SyntheticSettings
from sglang_omni.admission.controller import AdmissionController
from sglang_omni.config.image_options import ImageOptions
from sglang_omni.config.realtime_options import RealtimeOptions
from sglang_omni.engines.runtime.process import EngineProcess, ProcessSpec
from sglang_omni.engines.runtime.shared_descriptor import SharedDescriptor
from sglang_omni.entrypoints.http.app import create_app
from sglang_omni.entrypoints.http.transport.uvicorn_server import create_web_server, freeze_gc, run
from sglang_omni.media.speech_spans import CutRules
from sglang_omni.models.image import Size
from sglang_omni.models.ming.capabilities import RELEASED
from sglang_omni.models.ming.speech_text import MingSpeechText
from sglang_omni.models.speech_text import DEFAULT_READING
from sglang_omni.pipeline.image_request import ImageEvent, ImageRequest
from sglang_omni.pipeline.recording import RecordingEnd, RecordingPiece
from sglang_omni.pipeline.request import ChatRequest, Event, MediaPart, SpeechRequest
from sglang_omni.pipeline.speech import Speaker, speak
from sglang_omni.protocol.compat.model_names import build_model_names
from sglang_omni.protocol.compat.voice_names import map_openai_voices
from sglang_omni.protocol.errors import ImagesUnavailable, InvalidRequest
from sglang_omni.queueing.queue import QueueRules
from sglang_omni.voices.cloner import CloneResult
from sglang_omni.voices.registry import VoiceRegistry

TIMEOUT_S = 600.0
ROOT = Path(__file__).parents[2]


class NoVoiceCloner:
    """A voice cloner that rejects every recording: there is no encoder."""

    async def clone(
        self, part: MediaPart, text: str | None, tenant: str | None = None
    ) -> CloneResult:
        """Raise `InvalidRequest`."""
        raise InvalidRequest("the synthetic server cannot clone voices", param=part.field)


PATCH_S = PATCH_SAMPLES / SAMPLE_RATE
SPEECH_TEXT = MingSpeechText()


class SyntheticBackend:
    """A `Backend` that supports only speech."""

    model = "ming-omni"
    model_names = build_model_names((model,), {}, strict=False)
    strict_fields = False
    sample_rate = SAMPLE_RATE
    frame_s = PATCH_S
    speech_text = SPEECH_TEXT
    reading = DEFAULT_READING
    default_system = ""
    voices = (VOICE,)
    capabilities = RELEASED
    voice_aliases: Mapping[str, str] = MappingProxyType({})
    openai_voices: Mapping[str, str] = map_openai_voices(voices)
    default_voice = VOICE
    accepts_media = deterministic_text = has_speaker_encoder = has_grammars = supports_grammar = (
        False
    )
    max_tokens = 1
    context_length = vocabulary_size = 1
    max_body_bytes = 1 << 20
    registries = ()
    realtime = RealtimeOptions()
    image_options = ImageOptions()

    def __init__(
        self,
        settings: SyntheticSettings,
        max_in_flight: int = 4096,
        queue: QueueRules | None = None,
    ) -> None:
        """Without a `queue` every request goes straight to the engine."""
        self.draining = asyncio.Event()
        self.voice_registry = VoiceRegistry(NoVoiceCloner(), None)
        factory = "benchmarks.synthetic.talker:open_worker"
        paths = {"PYTHONPATH": f"{ROOT}{os.pathsep}{os.environ.get('PYTHONPATH', '')}"}
        spec = ProcessSpec("talker", factory, settings, paths, max_in_flight=max_in_flight)
        self.talker = EngineProcess(spec)
        self._admission = (
            AdmissionController({"talker": [self.talker]}, queue, TIMEOUT_S) if queue else None
        )

    @property
    def ready(self) -> bool:
        """Return whether the engine is up."""
        return self.talker.health.state == "ready"

    def encode_prompt(self, text: str) -> tuple[int, ...]:
        """Return nothing: there is no tokenizer."""
        return ()

    def tokenize(self, request: ChatRequest) -> tuple[int, ...]:
        """Return nothing: there is no tokenizer."""
        return ()

    def decode_token(self, token_id: int) -> tuple[str, bytes]:
        """Return nothing: there is no tokenizer."""
        return "", b""

    def engines(self) -> dict[str, dict[str, Any]]:
        """Return state and counters of the one engine, and of the queue in front of it."""
        state = asdict(self.talker.health)
        if self._admission is not None:
            state["counters"] = {**state["counters"], **self._admission.counters()["talker"]}
        return {"talker": state}

    def profile(self, engine: str, name: str | None) -> str:
        """Start a profile of the engine in a folder of that name; None ends it."""
        self.talker.profile(name)
        return name or ""

    def respond(self, request: ChatRequest) -> AsyncGenerator[Event, None]:
        """Raise `InvalidRequest`: there is no thinker."""
        raise InvalidRequest("the synthetic server supports only speech", param="messages")

    def require_images(self) -> None:
        """Raise `ImagesUnavailable`."""
        raise ImagesUnavailable("the synthetic server")

    def fit_resolution(self, size: Size) -> int:
        """Raise `ImagesUnavailable`."""
        raise ImagesUnavailable("the synthetic server")

    def draw(self, request: ImageRequest) -> AsyncGenerator[ImageEvent, None]:
        """Raise `ImagesUnavailable`."""
        raise ImagesUnavailable("the synthetic server")

    def cut_recording(
        self, recording: SharedDescriptor | str, rules: CutRules, tenant: str | None, field: str
    ) -> AsyncGenerator[RecordingPiece | RecordingEnd, None]:
        """Raise `InvalidRequest`: there is no thinker."""
        raise InvalidRequest("the synthetic server supports only speech", param=field)

    def stream_speech(
        self, request: SpeechRequest, text: AsyncGenerator[str, None]
    ) -> AsyncGenerator[Event, None]:
        """Raise `InvalidRequest`: texts must be complete."""
        raise InvalidRequest("the synthetic server does not stream text input")

    def speak(self, request: SpeechRequest) -> AsyncGenerator[Event, None]:
        """Read a text aloud."""
        voice = request.voice
        speaker = Speaker(self.talker, SPEECH_TEXT, PATCH_S, voice.name, voice.seed, SAMPLE_RATE)
        if self._admission is None:
            return speak(speaker, request)
        return self._admission.with_timeout(
            request, self._admitted(self._admission, speaker, request)
        )

    @staticmethod
    async def _admitted(
        admission: AdmissionController, speaker: Speaker, request: SpeechRequest
    ) -> AsyncGenerator[Event, None]:
        async with admission.admit(request), aclosing(speak(speaker, request)) as events:
            async for event in events:
                yield event


def build_server(backend: SyntheticBackend, port: int) -> uvicorn.Server:
    """Build the HTTP server over `backend`, on loopback."""
    return create_web_server(create_app(backend), "warning", grace_s=0, port=port)


async def serve(settings: SyntheticSettings, port: int, queue_length: int | None) -> None:
    """Serve on loopback until interrupted."""
    queue = None if queue_length is None else QueueRules(queue_length)
    backend = SyntheticBackend(settings, queue=queue)
    await asyncio.gather(backend.talker.start(), asyncio.to_thread(SPEECH_TEXT.warm_up))
    freeze_gc()
    try:
        await build_server(backend, port).serve()
    finally:
        await backend.talker.stop()


def main() -> None:
    """Parse the command line and serve."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--port", type=int, default=8001)
    parser.add_argument("--queue-length", type=int, help="admit by slots; this many may wait")
    for entry in fields(SyntheticSettings):
        name = "--" + entry.name.replace("_", "-")
        parser.add_argument(name, type=type(entry.default), default=entry.default)
    arguments = vars(parser.parse_args())
    port, queue_length = arguments.pop("port"), arguments.pop("queue_length")
    run(serve(SyntheticSettings(**arguments), port, queue_length))


if __name__ == "__main__":
    main()
