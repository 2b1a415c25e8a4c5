"""Engines that play scripts, and the real talker inside the test's own process."""

import asyncio
import itertools
from contextlib import aclosing, nullcontext

import numpy as np

from sglang_omni.engines.runtime.step_loop import StepInputQueue, run_steps
from sglang_omni.engines.runtime.transport import Cancel, Failed, Stop, Submit
from sglang_omni.engines.speech.contract import TalkerChunk
from sglang_omni.engines.thinker.contract import ThinkerOutput
from sglang_omni.media.fetch import FetchPolicy
from sglang_omni.pipeline.media_preprocessor import MediaPreprocessor
from sglang_omni.pipeline.respond import Engines
from tests.testing.family import FRAME_S, MEDIA_FORMAT, RATE, SPEECH_TEXT

# Of a server that takes text only.
TEXT_ONLY = MediaPreprocessor(FetchPolicy(), MEDIA_FORMAT, None, {})
# What a pipeline must know of the speech model.
SPEECH = {"speech_text": SPEECH_TEXT, "sample_rate": RATE, "frame_s": FRAME_S}


def admit_all(thinker, talker):
    """Admits everybody to these engines at once."""
    return lambda request: nullcontext(Engines(thinker, talker))


class ScriptedEngine:
    """Plays `script` for every request; knows what it was asked and what is still open."""

    def __init__(self, script):
        self.script, self.requests, self.open = script, [], 0

    async def submit(self, request):
        self.requests.append(request)
        self.open += 1
        try:
            async with aclosing(self.script(request)) as outputs:
                async for output in outputs:
                    yield output
        finally:
            self.open -= 1


def script_answer(tokenizer, texts, *, clock=None, pace=0.0, cached=0, finish="stop", then=None):
    """A thinker's script: one output for each text, every `pace` seconds of `clock`.

    It ends with `finish`, or by raising `then`; without both it hangs.
    """

    async def script(request):
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


async def script_silence(request):
    """A talker's script that never says anything."""
    await asyncio.Event().wait()
    yield


def script_hum(patches=2, then=None):
    """A talker's script: chunks filled with the request's number; the first holds no samples."""

    async def script(request):
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

    def __init__(self, worker):
        self._worker, self._inputs, self._outputs = worker, StepInputQueue(window=10**9), {}
        self._numbers = itertools.count()
        self.widest = 0

    async def __aenter__(self):
        self._loop = asyncio.get_running_loop()
        self._running = self._loop.run_in_executor(
            None, run_steps, self._worker, self._inputs, self
        )
        return self

    async def __aexit__(self, *error):
        self._inputs.deliver(Stop())
        await self._running

    async def submit(self, request):
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

    def send(self, message):
        assert isinstance(message, Failed)
        self._loop.call_soon_threadsafe(self._hand_over, message.request_id, message.error)

    def send_outputs(self, message):
        for request_id, output in message.outputs:
            self._loop.call_soon_threadsafe(self._hand_over, request_id, output)

    def report(self, counters):
        self.widest = max(self.widest, counters["active_slots"])

    def begin_work(self):
        pass

    def end_work(self):
        pass

    def _hand_over(self, request_id, result):
        if request_id in self._outputs:
            self._outputs[request_id].put_nowait(result)
