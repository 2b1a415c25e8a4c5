"""The Python API for programs without an event loop."""

import os
import threading
import weakref
from collections.abc import Callable
from types import TracebackType
from typing import Any, Literal, TypeVar, Unpack, overload

import numpy as np

from sglang_omni.entrypoints.python.answer import ChatAnswer
from sglang_omni.entrypoints.python.async_omni import AsyncOmni
from sglang_omni.entrypoints.python.build_requests import (
    ChatArguments,
    Messages,
    SpeechArguments,
    SpokenTurns,
)
from sglang_omni.entrypoints.python.loop_thread import LoopThread
from sglang_omni.entrypoints.python.media_source import MediaSource
from sglang_omni.entrypoints.python.streams import ChatStream, SpeechStream
from sglang_omni.entrypoints.python.timed_text import TimedText
from sglang_omni.models.capabilities import Capabilities
from sglang_omni.pipeline.request import ChatRequest

T = TypeVar("T")


class Omni:
    """A model with its engines: chat, speak and transcribe, without an HTTP server.

    ```python
    with Omni() as omni:
        print(omni.chat("What is 17 + 25?").text)
        for pcm in omni.speak("Hello!"):
            play(pcm)
    ```

    Its methods may be called from several threads at once. The engines stop with `close`, with the
    `with` block, when the object is no longer referenced, or at the end of the process. Errors are
    those of `sglang_omni.protocol.errors`.
    """

    def __init__(self, model_path: str | os.PathLike[str] | None = None, **options: Any) -> None:
        """Start the engines, and wait until they are ready.

        Args:
            model_path: Folder of the checkpoint; None for Ming-mini, which is part of the package.
            options: Options of `sgl-omni serve` by the names of the configuration, such as
                `device="cpu"`, `text_only=True` or `thinker={"tp_size": 2}`.

        Raises:
            StartupError: The checkpoint or an option cannot be used, or an engine cannot start. No
                process is left then.
        """
        self._omni = AsyncOmni(model_path, **options)
        self._thread = LoopThread()
        self._close_lock = threading.Lock()
        try:
            self._thread.run(self._omni.start())
        except BaseException:
            self._thread.close()
            raise
        # The end of the process needs no finalizer: the kernel kills the engines then.
        weakref.finalize(self, self._thread.end).atexit = False

    def close(self) -> None:
        """Abort all requests and stop the engines. Further calls do nothing."""
        with self._close_lock:
            if self._thread.is_closed:
                return
            try:
                self._thread.run(self._omni.close())
            finally:
                self._thread.close()

    def __enter__(self) -> "Omni":
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        tb: TracebackType | None,
    ) -> None:
        self.close()

    @property
    def voices(self) -> tuple[str, ...]:
        """Return the names of the preset voices."""
        return self._omni.voices

    @property
    def sample_rate(self) -> int:
        """Return the sample rate of speech in Hz."""
        return self._omni.sample_rate

    @property
    def capabilities(self) -> Capabilities:
        """Return what the checkpoint can do."""
        return self._omni.capabilities

    @overload
    def chat(
        self,
        messages: Messages,
        *,
        stream: Literal[False] = False,
        **arguments: Unpack[ChatArguments],
    ) -> ChatAnswer: ...

    @overload
    def chat(
        self, messages: Messages, *, stream: Literal[True], **arguments: Unpack[ChatArguments]
    ) -> ChatStream: ...

    def chat(
        self, messages: Messages, *, stream: bool = False, **arguments: Unpack[ChatArguments]
    ) -> ChatAnswer | ChatStream:
        """Answer a conversation.

        Args:
            messages: The user's text, or messages as OpenAI's dictionaries.
            stream: Whether to return the answer in pieces while it is generated.
            arguments: `system`, `max_tokens`, `temperature`, `stop`, `tools`, `tool_choice`,
                `response_format`, `reasoning_effort`, `voice`, `images`, `audio`,
                `use_audio_in_video`, `video_fps`, `video_max_frames` and `seed`: see
                `ChatArguments`.

        Returns:
            The answer, or with `stream` an iterator of its pieces.

        Raises:
            InvalidRequest: A field is invalid; `param` names it.
        """
        pieces = self._stream_chat(self._omni.build_chat(messages, **arguments))
        return pieces if stream else pieces.read()

    def speak(self, text: SpokenTurns, **arguments: Unpack[SpeechArguments]) -> SpeechStream:
        """Read a text aloud.

        Args:
            text: The text, or the turns of several speakers as dictionaries with `text`, `voice`
                and other fields of the speaker.
            arguments: `voice`, `ref_audio`, `ref_text`, `instructions`, `seed`, `speed` and
                `timestamps`, see `SpeechArguments`.

        Returns:
            An iterator of chunks of samples, with `sample_rate`, `segments` and `read()`.

        Raises:
            InvalidRequest: A field is invalid; `param` names it.
        """
        request, speed = self._omni.build_speech(text, **arguments)
        speech = self._call(lambda: self._omni.stream_speech(request, speed))
        return SpeechStream(speech, self._thread, self)

    def transcribe(
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
        return self._thread.run(
            self._omni.transcribe(recording, sample_rate=sample_rate, language=language)
        )

    def transcribe_segments(
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
        return self._thread.run(
            self._omni.transcribe_segments(recording, sample_rate=sample_rate, language=language)
        )

    def _stream_chat(self, request: ChatRequest) -> ChatStream:
        answer = self._call(lambda: self._omni.stream_chat(request))
        return ChatStream(answer, self._thread, self)

    def _call(self, function: Callable[[], T]) -> T:
        """Call a function on the loop, whose streams belong to it."""

        async def call() -> T:
            return function()

        return self._thread.run(call())
