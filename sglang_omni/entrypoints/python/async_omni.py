"""The Python API for programs with an event loop."""

import asyncio
import os
from collections.abc import AsyncGenerator
from functools import partial
from types import TracebackType
from typing import Any, Literal, TypeVar, Unpack, overload
from weakref import WeakSet

import numpy as np

from sglang_omni.engines.runtime.shared_descriptor import SharedDescriptor
from sglang_omni.entrypoints.python.answer import AnswerBuilder, ChatAnswer
from sglang_omni.entrypoints.python.async_streams import AsyncChatStream, AsyncSpeechStream
from sglang_omni.entrypoints.python.build_requests import (
    ChatArguments,
    Messages,
    SpeechArguments,
    SpokenTurns,
    build_chat,
    build_speech,
    build_transcription,
)
from sglang_omni.entrypoints.python.media_source import MediaSource
from sglang_omni.entrypoints.python.open_server import open_server
from sglang_omni.entrypoints.python.samples import limit_audio, stream_samples
from sglang_omni.entrypoints.python.task_stream import TaskStream
from sglang_omni.entrypoints.python.timed_text import TimedText
from sglang_omni.entrypoints.requests.transcription import FILE_FIELD
from sglang_omni.models.capabilities import Capabilities
from sglang_omni.pipeline.completeness import require_finished
from sglang_omni.pipeline.request import ChatRequest, SpeechRequest, TimedSegment
from sglang_omni.pipeline.transcript import TranscriptSegment, join_texts, transcribe
from sglang_omni.protocol.errors import EngineUnavailable

T = TypeVar("T")


class AsyncOmni:
    """A model with its engines: chat, speak and transcribe, without an HTTP server.

    ```python
    async with AsyncOmni() as omni:
        answer = await omni.chat("What is 17 + 25?")
        async for pcm in omni.speak("Hello!"):
            play(pcm)
    ```

    Errors are those of `sglang_omni.protocol.errors`.
    """

    def __init__(self, model_path: str | os.PathLike[str] | None = None, **options: Any) -> None:
        """Read the checkpoint and the options, without starting an engine.

        Args:
            model_path: Folder of the checkpoint; None for Ming-mini, which is part of the package.
            options: Options of `sgl-omni serve` by the names of the configuration, such as
                `device="cpu"`, `text_only=True` or `thinker={"tp_size": 2}`.

        Raises:
            StartupError: The checkpoint or an option cannot be used.
        """
        self._server = open_server(model_path, options)
        self._streams: WeakSet[TaskStream[Any]] = WeakSet()
        self._stop_task: asyncio.Task[None] | None = None

    async def start(self) -> None:
        """Start the engines. `async with` calls it. Raises `StartupError`; no engine is left then.

        The engines end with the thread that calls it.
        """
        self._require_open()
        await self._server.start()

    async def close(self) -> None:
        """Abort all requests and stop the engines. Further calls do nothing."""
        if self._stop_task is None:
            self._stop_task = asyncio.create_task(self._stop())
        await asyncio.shield(self._stop_task)

    async def __aenter__(self) -> "AsyncOmni":
        await self.start()
        return self

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        tb: TracebackType | None,
    ) -> None:
        await self.close()

    @property
    def voices(self) -> tuple[str, ...]:
        """Return the names of the preset voices."""
        return self._server.voices

    @property
    def sample_rate(self) -> int:
        """Return the sample rate of speech in Hz."""
        return self._server.sample_rate

    @property
    def capabilities(self) -> Capabilities:
        """Return what the checkpoint can do."""
        return self._server.capabilities

    @overload
    async def chat(
        self,
        messages: Messages,
        *,
        stream: Literal[False] = False,
        **arguments: Unpack[ChatArguments],
    ) -> ChatAnswer: ...

    @overload
    async def chat(
        self, messages: Messages, *, stream: Literal[True], **arguments: Unpack[ChatArguments]
    ) -> AsyncChatStream: ...

    async def chat(
        self, messages: Messages, *, stream: bool = False, **arguments: Unpack[ChatArguments]
    ) -> ChatAnswer | AsyncChatStream:
        """Answer a conversation.

        Args:
            messages: The user's text, or messages as OpenAI's dictionaries.
            stream: Whether to return the answer in pieces while it is generated.
            arguments: `system`, `max_tokens`, `temperature`, `stop`, `tools`, `tool_choice`,
                `response_format`, `reasoning_effort`, `voice`, `images`, `audio`,
                `use_audio_in_video`, `video_fps`, `video_max_frames` and `seed`: see
                `ChatArguments`.

        Returns:
            The answer, or with `stream` an asynchronous iterator of its pieces.

        Raises:
            InvalidRequest: A field is invalid; `param` names it.
        """
        # Files are read, and long texts converted.
        request = await asyncio.to_thread(self.build_chat, messages, **arguments)
        pieces = self.stream_chat(request)
        return pieces if stream else await pieces.read()

    def speak(self, text: SpokenTurns, **arguments: Unpack[SpeechArguments]) -> AsyncSpeechStream:
        """Read a text aloud.

        Args:
            text: The text, or the turns of several speakers as dictionaries with `text`, `voice`
                and other fields of the speaker.
            arguments: `voice`, `ref_audio`, `ref_text`, `instructions`, `seed`, `speed` and
                `timestamps`, see `SpeechArguments`.

        Returns:
            An asynchronous iterator of chunks of samples, with `sample_rate`, `segments` and
            `read()`.

        Raises:
            InvalidRequest: A field is invalid; `param` names it.
        """
        return self.stream_speech(*self.build_speech(text, **arguments))

    async def transcribe(
        self,
        recording: MediaSource | np.ndarray,
        *,
        sample_rate: int | None = None,
        language: str | None = None,
    ) -> str:
        """Return what is said in a recording of up to two hours; "" if nobody speaks.

        Args:
            recording: A path, a URL, the bytes of a file, or samples of one channel, [samples].
            sample_rate: The rate of samples in Hz.
            language: The language, such as "en", if known.

        Raises:
            InvalidRequest: The recording or a field is invalid; `param` names it.
        """
        segments = await self._transcribe(recording, sample_rate, language, with_times=False)
        return join_texts([segment.text for segment in segments])

    async def transcribe_segments(
        self,
        recording: MediaSource | np.ndarray,
        *,
        sample_rate: int | None = None,
        language: str | None = None,
    ) -> list[TimedText]:
        """Return what is said, with times: a segment for each part between two pauses.

        The arguments are those of `transcribe`.

        Raises:
            InvalidRequest: The recording or a field is invalid; `param` names it.
        """
        segments = await self._transcribe(recording, sample_rate, language, with_times=True)
        return [TimedText(segment.start, segment.end, segment.text) for segment in segments]

    async def _transcribe(
        self,
        recording: MediaSource | np.ndarray,
        sample_rate: int | None,
        language: str | None,
        *,
        with_times: bool,
    ) -> list[TranscriptSegment]:
        self._require_open()
        build = partial(build_transcription, self._server, recording, sample_rate, language)
        plan, file = await asyncio.to_thread(build, with_times=with_times)
        source = (
            file
            if isinstance(file, str)
            else await asyncio.to_thread(SharedDescriptor.create_file, file)
        )
        pieces = self._server.cut_recording(source, plan.rules, None, FILE_FIELD)
        events = self._track(transcribe(pieces, plan.build_request, self._server.respond))
        return [event async for event in events if isinstance(event, TranscriptSegment)]

    def build_chat(self, messages: Messages, **arguments: Unpack[ChatArguments]) -> ChatRequest:
        """Return the request of `chat`. May run in any thread."""
        self._require_open()
        return build_chat(self._server, messages, **arguments)

    def build_speech(
        self, text: SpokenTurns, **arguments: Unpack[SpeechArguments]
    ) -> tuple[SpeechRequest, float]:
        """Return the request of `speak`, and its speed. May run in any thread."""
        self._require_open()
        return build_speech(self._server, text, **arguments)

    def stream_chat(self, request: ChatRequest) -> AsyncChatStream:
        """Return the answer to a request in pieces."""
        self._require_open()
        events = require_finished(self._server.respond(request))
        builder = AnswerBuilder(self.sample_rate, has_audio=request.voice is not None)
        return AsyncChatStream(self._track(limit_audio(events, self.sample_rate)), builder)

    def stream_speech(self, request: SpeechRequest, speed: float) -> AsyncSpeechStream:
        """Return the speech of a request in chunks."""
        self._require_open()
        events = require_finished(self._server.speak(request))
        segments: list[TimedSegment] = []
        samples = stream_samples(events, self.sample_rate, speed, segments)
        return AsyncSpeechStream(self._track(samples), self.sample_rate, segments)

    def _track(self, items: AsyncGenerator[T, None]) -> TaskStream[T]:
        """Return the stream of a request, which `close` aborts."""
        stream = TaskStream(items)
        self._streams.add(stream)
        return stream

    async def _stop(self) -> None:
        for stream in list(self._streams):
            await stream.aclose(_make_closed_error())
        await self._server.stop()

    def _require_open(self) -> None:
        if self._stop_task is not None:
            raise _make_closed_error()


def _make_closed_error() -> EngineUnavailable:
    return EngineUnavailable("this object is closed; create a new one")
