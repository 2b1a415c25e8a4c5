"""A backend that plays scripts, and a real server around it."""

import asyncio
import copy
import socket
import tempfile
import threading
import time
from collections.abc import AsyncGenerator, Callable, Iterator, Mapping
from contextlib import aclosing, contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from types import MappingProxyType
from typing import Any, get_args

import numpy as np

from sglang_omni.config.http_options import HttpOptions
from sglang_omni.config.image_options import ImageOptions
from sglang_omni.config.realtime_options import RealtimeOptions
from sglang_omni.engines.runtime.shared_array import SharedArray
from sglang_omni.engines.runtime.shared_descriptor import SharedDescriptor
from sglang_omni.engines.speech.contract import ClonedVoice
from sglang_omni.entrypoints.http.app import create_app
from sglang_omni.entrypoints.http.middleware.auth import Access
from sglang_omni.entrypoints.http.transport.uvicorn_server import create_web_server
from sglang_omni.media.speech_spans import CutRules
from sglang_omni.models.capabilities import SpeechTask
from sglang_omni.models.image import Size
from sglang_omni.models.speech_text import DEFAULT_READING, SpeechText
from sglang_omni.observability.trace_recorder import TraceRecorder
from sglang_omni.pipeline.image_request import (
    CompletedImage,
    ImageEvent,
    ImageRequest,
    ImagesFinished,
    ImageStep,
    ImageUsage,
    PartialImage,
)
from sglang_omni.pipeline.recording import RecordingEnd, RecordingPiece
from sglang_omni.pipeline.request import (
    AudioDelta,
    ChatRequest,
    Event,
    Finished,
    MediaPart,
    SpeechRequest,
    TextDelta,
    TextPart,
    TranscriptDelta,
    Usage,
)
from sglang_omni.protocol.compat.model_names import build_model_names
from sglang_omni.protocol.compat.voice_names import map_openai_voices
from sglang_omni.protocol.errors import ImagesUnavailable, InvalidRequest, RequestNotFound
from sglang_omni.voices.cloner import CloneResult
from sglang_omni.voices.registry import VoiceRegistry
from sglang_omni.voices.store import Quota, VoiceStore
from tests.testing.family import CAPABILITIES, CHAT, FRAME_S, RATE, SPEECH_TEXT

TONE_S = 0.32
# For tests of what a route does with a field that not every family supports.
EVERYTHING = replace(
    CAPABILITIES,
    speech_languages=("zh", "en"),
    speech_tasks=get_args(SpeechTask),
    speech_instructions=True,
    transcription_languages=None,
    transcription_hints=True,
    translation_prompt="Put this into English.",
    video_sound=True,
    image_output=True,
)
USAGE = Usage(prompt_tokens=7, cached_tokens=3, completion_tokens=5, audio_tokens=4)
Request = ChatRequest | SpeechRequest
Script = Callable[[Any], AsyncGenerator[Event, None]]
ImageScript = Callable[[ImageRequest], AsyncGenerator[ImageEvent, None]]


def tone(seconds: float = TONE_S) -> np.ndarray:
    """A quiet tone, by default as long as Ming's patch, whatever the family's is."""
    return (0.25 * np.sin(np.arange(round(seconds * RATE)) / 16)).astype(np.float32)


def words(request: Request) -> list[str]:
    """What the fake answers: the words it was given, each with its following space."""
    if isinstance(request, SpeechRequest):
        return request.text.split(" ")
    if request.prompt_ids is not None:
        return [word + " " for word in bytes(request.prompt_ids).decode().split(" ")]
    parts = request.messages[-1].content
    text = "".join(part.text for part in parts if isinstance(part, TextPart))
    return [word + " " for word in text.split(" ")]


async def echo(request: Request) -> AsyncGenerator[Event, None]:
    """Says the words back, each as text, transcript and a tone, as the request asks."""
    for word in words(request):
        await asyncio.sleep(0)
        if isinstance(request, ChatRequest):
            yield TextDelta(word)
            if request.voice:
                yield TranscriptDelta(word)
        if request.voice:
            yield AudioDelta(tone())
    yield Finished("stop", USAGE)


def playing(*events: Event, then: Exception | None = None, pause: float = 0.0) -> Script:
    """A script of fixed events, each after a pause in seconds; `then` is raised at the end."""

    async def script(request: Request) -> AsyncGenerator[Event, None]:
        for event in events:
            await asyncio.sleep(pause)
            yield event
        if then is not None:
            # A raised error keeps the frames it passed; the test's own one must not.
            raise copy.copy(then)

    return script


def hanging(*events: Event) -> Script:
    """A script that plays `events`, then never ends."""

    async def script(request: Request) -> AsyncGenerator[Event, None]:
        for event in events:
            yield event
        await asyncio.sleep(3600)

    return script


async def paint(request: ImageRequest) -> AsyncGenerator[ImageEvent, None]:
    """Draw images of 4 x 2 pixels, of which the seed is the colour; previews are black."""
    for index, seed in enumerate(request.seeds):
        for number in range(request.previews):
            yield PartialImage(index, number, np.zeros((2, 4, 3), np.uint8))
        yield ImageStep(index, 1, 1)
        usage = ImageUsage(7, 6 * len(request.media), 8)
        yield CompletedImage(index, np.full((2, 4, 3), seed % 256, np.uint8), seed, usage)
    yield ImagesFinished(ImageUsage(7, 6 * len(request.media), 8 * len(request.seeds)))


class FakeCloner:
    """Makes a voice of any recording but an empty one."""

    def __init__(self) -> None:
        self.cloned: list[tuple[MediaPart, str | None]] = []

    async def clone(
        self, part: MediaPart, text: str | None, tenant: str | None = None
    ) -> CloneResult:
        self.cloned.append((part, text))
        if not part.sources[0]:
            raise InvalidRequest(f"{part.field}: the medium is empty", param=part.field)
        array = SharedArray()
        layout = array.write(np.arange(8 * 64 + 192, dtype=np.float32))
        return CloneResult(ClonedVoice("key", text, array, layout, 8), 2.5, True)


class FakeBackend:
    """Plays `script` for every request, and knows how many are at work."""

    model = "org/ming"
    model_names = build_model_names((model,), {}, strict=False)
    strict_fields = False
    capabilities = CAPABILITIES
    sample_rate = RATE
    frame_s = FRAME_S
    default_system = CHAT.default_system
    speech_text: SpeechText = SPEECH_TEXT
    reading = DEFAULT_READING
    voices: tuple[str, ...] = ("prompt", "river")
    voice_aliases: Mapping[str, str] = MappingProxyType({"nova": "river"})
    openai_voices: Mapping[str, str] = map_openai_voices(voices)
    default_voice = "prompt"
    max_tokens = 4096
    context_length = 32_768
    vocabulary_size = 256
    max_body_bytes = 1 << 20
    registries = ()
    realtime = RealtimeOptions()
    has_speaker_encoder = accepts_media = True
    has_grammars = supports_grammar = True
    image_options = ImageOptions()

    def __init__(self) -> None:
        self.draining = asyncio.Event()
        self.folder = tempfile.TemporaryDirectory()
        self.reset()

    def reset(self) -> None:
        """Forget everything that a test did."""
        self.draining.clear()
        self.folder.cleanup()
        store = VoiceStore(Path(self.folder.name), Quota(max_stored=4, max_per_owner=3), "weights")
        store.load()
        self.cloner = FakeCloner()
        self.voice_registry = VoiceRegistry(self.cloner, store)
        self.script: Script = echo
        self.image_script: ImageScript = paint
        self.requests: list[Any] = []
        self.profiles: list[str | None] = []
        self.pieces: tuple[RecordingPiece, ...] = ()
        self.cut_rules: list[CutRules] = []
        # A request that an earlier test left behind counts in that test's set, whenever it ends.
        self._running: set[object] = set()
        self.deterministic_text = False
        self.capabilities = type(self).capabilities
        self.ready = True

    @property
    def running(self) -> int:
        """How many requests of this test are at work."""
        return len(self._running)

    def encode_prompt(self, text: str) -> tuple[int, ...]:
        """The tokens of a text are its bytes."""
        return tuple(text.encode())

    def tokenize(self, request: ChatRequest) -> tuple[int, ...]:
        """The tokens of a chat are the bytes of its texts, with its tools' names before them."""
        texts = [tool.name for tool in request.tools]
        for message in request.messages:
            texts += [part.text for part in message.content if isinstance(part, TextPart)]
        return self.encode_prompt("".join(texts))

    def decode_token(self, token_id: int) -> tuple[str, bytes]:
        return f"<{token_id}>", bytes([token_id]) if token_id else b""

    def engines(self) -> dict[str, dict[str, Any]]:
        return {"talker": {"state": "ready" if self.ready else "starting", "steps": 3}}

    def profile(self, engine: str, name: str | None) -> str:
        if engine != "talker":
            raise RequestNotFound(f"no engine {engine!r}", param="engine")
        self.profiles.append(name)
        return f"/profiles/{name}" if name else ""

    def _play(self, request: Request) -> AsyncGenerator[Event, None]:
        return self._play_any(request, self.script)

    async def _play_any(self, request: Any, script: Any) -> AsyncGenerator[Any, None]:
        self.requests.append(request)
        running, token = self._running, object()
        running.add(token)
        try:
            async for event in script(request):
                yield event
        finally:
            running.discard(token)

    def respond(self, request: ChatRequest) -> AsyncGenerator[Event, None]:
        return self._play(request)

    async def cut_recording(
        self, recording: SharedDescriptor | str, rules: CutRules, tenant: str | None, field: str
    ) -> AsyncGenerator[RecordingPiece | RecordingEnd, None]:
        """Cut a recording into `pieces`; without any, the file is one piece of a second."""
        self.cut_rules.append(rules)
        content = recording.encode() if isinstance(recording, str) else recording.open().read()
        for piece in self.pieces or (RecordingPiece(0.0, 1.0, 1.0, 1.0, content),):
            yield piece
        yield RecordingEnd(self.pieces[-1].end if self.pieces else 1.0)

    def require_images(self) -> None:
        if not self.capabilities.image_output:
            raise ImagesUnavailable(self.capabilities.name)

    def fit_resolution(self, size: Size) -> int:
        return 1024 if size[0] * size[1] > 512 * 512 else 512

    def draw(self, request: ImageRequest) -> AsyncGenerator[ImageEvent, None]:
        """Draw images of one colour, which is the seed, unless a script does otherwise."""
        return self._play_any(request, self.image_script)

    def speak(self, request: SpeechRequest) -> AsyncGenerator[Event, None]:
        return self._play(request)

    async def stream_speech(
        self, request: SpeechRequest, text: AsyncGenerator[str, None]
    ) -> AsyncGenerator[Event, None]:
        """Says each piece of the text as it comes."""
        self.requests.append(request)
        async with aclosing(text):
            async for piece in text:
                yield TranscriptDelta(piece)
                yield AudioDelta(tone())
        yield Finished("stop", USAGE)

    def wait_running(self, count: int, seconds: float = 1.0) -> None:
        """Wait until `count` requests are at work."""
        deadline = time.monotonic() + seconds
        while self.running != count:
            assert time.monotonic() < deadline, f"{self.running} running, not {count}"
            time.sleep(0.005)


class DrawingBackend(FakeBackend):
    """A fake that draws images, whatever the family of the tests does."""

    capabilities = replace(CAPABILITIES, image_output=True)


@dataclass(frozen=True)
class Served:
    """A running server."""

    url: str
    backend: FakeBackend


@contextmanager
def serving(
    access: Access | None = None,
    port: int = 0,
    limits: HttpOptions | None = None,
    backend: FakeBackend | None = None,
    **wiring: Any,
) -> Iterator[Served]:
    """Uvicorn on a loopback port, by default a free one, in a thread.

    `wiring` is more of what `create_app` takes.
    """
    backend = backend or FakeBackend()
    listener = socket.socket()
    # A port that was served a moment ago can be served again.
    listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    listener.bind(("127.0.0.1", port))
    recorder = wiring.pop("recorder", None) or TraceRecorder(lambda: backend.sample_rate)
    app = create_app(backend, access, recorder=recorder, **wiring)
    options: dict[str, Any] = {"frame_bytes": backend.realtime.frame_bytes, "limits": limits}
    options["on_refusal"] = recorder.record_refusal
    server = create_web_server(app, "critical", 1, **options)
    thread = threading.Thread(target=server.run, kwargs={"sockets": [listener]})
    thread.start()
    try:
        while not server.started:
            assert thread.is_alive()
            time.sleep(0.01)
        yield Served(f"http://127.0.0.1:{listener.getsockname()[1]}", backend)
    finally:
        server.should_exit = True
        thread.join()
        listener.close()
