"""Engines that play scripts, and the real talker inside the test's own process."""

import asyncio
import itertools
from collections.abc import AsyncGenerator, Callable, Mapping, Sequence
from contextlib import AbstractAsyncContextManager, aclosing, nullcontext
from typing import Any, Self, TypedDict

import numpy as np

from sglang_omni.engines.media_decoder.contract import Decoded
from sglang_omni.engines.runtime.process import Engine
from sglang_omni.engines.runtime.shared_array import SharedArray
from sglang_omni.engines.runtime.step_loop import StepInputQueue, run_steps
from sglang_omni.engines.runtime.transport import Cancel, Failed, FromEngine, Outputs, Stop, Submit
from sglang_omni.engines.speech.contract import TalkerChunk, TalkerRequest
from sglang_omni.engines.speech.worker import TalkerWorker
from sglang_omni.engines.thinker.contract import FinishReason, ThinkerOutput, ThinkerRequest
from sglang_omni.media.fetch import FetchPolicy
from sglang_omni.models.speech_text import SpeechText
from sglang_omni.pipeline.media_preprocessor import MediaPreprocessor
from sglang_omni.pipeline.request import ChatRequest, Event, Finished, SpeechRequest
from sglang_omni.pipeline.respond import Engines
from tests.testing.clock import FakeClock
from tests.testing.family import FRAME_S, MEDIA_FORMAT, RATE, SPEECH_TEXT, Tokens


class NoMediaDecoder:
    """The media decoders of a server that takes text only."""

    async def decode(self, *_: object, **__: object) -> tuple[Decoded, SharedArray]:
        raise AssertionError("nothing is decoded")


TEXT_ONLY = MediaPreprocessor(FetchPolicy(), MEDIA_FORMAT, NoMediaDecoder(), {})


class SpeechFacts(TypedDict):
    """What a pipeline must know of the speech model."""

    speech_text: SpeechText
    sample_rate: int
    frame_s: float


SPEECH: SpeechFacts = {"speech_text": SPEECH_TEXT, "sample_rate": RATE, "frame_s": FRAME_S}


class NoEngine:
    """The engine of requests that use none."""

    def submit(self, request: Any) -> AsyncGenerator[Any, None]:
        raise AssertionError("nothing is asked of this engine")


def admit_all(
    thinker: Engine | None, talker: Engine | None
) -> Callable[[ChatRequest | SpeechRequest], AbstractAsyncContextManager[Engines]]:
    """Admits everybody to these engines at once."""
    engines = Engines(thinker or NoEngine(), talker or NoEngine())
    return lambda request: nullcontext(engines)


Script = Callable[[Any], AsyncGenerator[Any, None]]


def end_of(events: list[Event]) -> Finished:
    last = events[-1]
    assert isinstance(last, Finished)
    return last


class ScriptedEngine:
    """Plays `script` for every request; knows what it was asked and what is still open."""

    def __init__(self, script: Script) -> None:
        self.script, self.open = script, 0
        self.requests: list[Any] = []

    async def submit(self, request: Any) -> AsyncGenerator[Any, None]:
        self.requests.append(request)
        self.open += 1
        try:
            async with aclosing(self.script(request)) as outputs:
                async for output in outputs:
                    yield output
        finally:
            self.open -= 1


def script_answer(
    tokenizer: Tokens,
    texts: Sequence[str],
    *,
    clock: FakeClock | None = None,
    pace: float = 0.0,
    cached: int = 0,
    finish: FinishReason | None = "stop",
    then: Exception | None = None,
) -> Script:
    """A thinker's script: one output for each text, every `pace` seconds of `clock`.

    It ends with `finish`, or by raising `then`; without both it hangs.
    """

    async def script(request: ThinkerRequest) -> AsyncGenerator[ThinkerOutput, None]:
        total = 0
        for number, text in enumerate(texts):
            if clock is not None and number:  # The first is there at once.
                await clock.sleep_until(number * pace)
            ids = tuple(tokenizer.encode_text(text))
            total += len(ids)
            last = finish if then is None and number == len(texts) - 1 else None
            yield ThinkerOutput(ids, len(request.input_ids), cached, total, last)
        if then is not None:
            raise then
        if finish is None:
            await asyncio.Event().wait()

    return script


async def script_silence(request: object) -> AsyncGenerator[Any, None]:
    """A talker's script that never says anything."""
    await asyncio.Event().wait()
    yield


def script_hum(patches: int = 2, then: Exception | None = None) -> Script:
    """A talker's script: chunks filled with the request's number; the first holds no samples."""

    async def script(request: TalkerRequest) -> AsyncGenerator[TalkerChunk, None]:
        for number in range(patches):
            await asyncio.sleep(0)
            pcm = np.full(number * 10, request.segment, np.float32)
            yield TalkerChunk(pcm, patches=1, last=number == patches - 1 and then is None)
        if then is not None:
            raise then

    return script


class LocalTalker:
    """The engine's own step loop around a `TalkerWorker`, in a thread instead of a process.

    Use it as an asynchronous context; on leaving, the worker is closed.
    """

    def __init__(self, worker: TalkerWorker) -> None:
        self._worker, self._inputs = worker, StepInputQueue(window=10**9)
        self._outputs: dict[str, asyncio.Queue[Any]] = {}
        self._numbers = itertools.count()
        self.widest = 0.0

    async def __aenter__(self) -> Self:
        self._loop = asyncio.get_running_loop()
        sender: Any = self
        self._running = self._loop.run_in_executor(
            None, run_steps, self._worker, self._inputs, sender
        )
        return self

    async def __aexit__(self, *error: object) -> None:
        self._inputs.deliver(Stop())
        await self._running

    async def submit(self, request: TalkerRequest) -> AsyncGenerator[TalkerChunk, None]:
        name = str(next(self._numbers))
        outputs = self._outputs[name] = asyncio.Queue()
        self._inputs.deliver(Submit(name, request))
        try:
            while True:
                message = await outputs.get()
                if isinstance(message, Exception):
                    raise message
                yield message
                if message.last:
                    return
        finally:
            del self._outputs[name]
            self._inputs.deliver(Cancel(name))

    # What the step loop sends, in its own thread.

    def send(self, message: FromEngine) -> None:
        assert isinstance(message, Failed)
        self._loop.call_soon_threadsafe(self._hand_over, message.request_id, message.error)

    def send_outputs(self, message: Outputs) -> None:
        for request_id, output in message.outputs:
            self._loop.call_soon_threadsafe(self._hand_over, request_id, output)

    def report(self, counters: Mapping[str, float]) -> None:
        self.widest = max(self.widest, counters["active_slots"])

    def begin_work(self) -> None:
        pass

    def end_work(self) -> None:
        pass

    def _hand_over(self, request_id: str, result: Any) -> None:
        if request_id in self._outputs:
            self._outputs[request_id].put_nowait(result)
