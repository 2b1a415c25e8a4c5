"""The eight stages of a chat, on one screen.

    preprocess -> { image encoder | audio encoder } -> aggregate -> thinker -> decode -> segment
               -> talker (CFM + audio VAE)

A text chat passes over 2 and 3, and over 7 and 8 unless its answer is spoken. Cancelling or
closing a generator here closes the engine streams below it, and so aborts the work inside the
engines.
"""

import sys
from collections.abc import AsyncGenerator, Awaitable, Callable
from contextlib import AbstractAsyncContextManager, AsyncExitStack, aclosing
from dataclasses import dataclass
from functools import partial
from typing import Any

from sglang_omni.admission.memory import MediaMemory
from sglang_omni.engines.runtime.process import Engine
from sglang_omni.engines.speech.contract import ClonedVoice
from sglang_omni.engines.thinker.contract import ThinkerOutput, ThinkerRequest
from sglang_omni.entrypoints.work_threads import run_off_loop
from sglang_omni.models.ming.prompt.tokenizer import ThinkerTokenizer
from sglang_omni.models.ming.prompt.tools import InvalidToolCall, ToolCall, ToolTokenDecoder
from sglang_omni.observability.trace import stage
from sglang_omni.pipeline.async_streams import Tee, chain, gather_or_cancel, merge
from sglang_omni.pipeline.decode import TextDecoder
from sglang_omni.pipeline.media_preprocessor import MediaPreprocessor
from sglang_omni.pipeline.preprocess import aggregate, preprocess, text_size
from sglang_omni.pipeline.reasoning_parser import Thought, with_thoughts
from sglang_omni.pipeline.request import (
    ChatRequest,
    Event,
    SpeechRequest,
    Started,
    TextDelta,
    ThoughtDelta,
    ToolCalled,
    Voice,
)
from sglang_omni.pipeline.segment import Clock, SegmentSettings, SystemClock
from sglang_omni.pipeline.speech import RequestUsage, Speaker, patches_in, say, speak
from sglang_omni.pipeline.tool_call_stream import Part, only_text, with_calls
from sglang_omni.pipeline.transcribe import has_speech

OpenVoice = Callable[[Voice, str | None], Awaitable[str | ClonedVoice | None]]


@dataclass(frozen=True)
class Engines:
    """The engines of one request."""

    thinker: Engine
    talker: Engine


Admit = Callable[[ChatRequest | SpeechRequest], AbstractAsyncContextManager[Engines]]


async def presets_only(voice: Voice, tenant: str | None = None) -> str:
    """What the talker is told of a preset."""
    assert voice.source is None, "nobody here clones voices"
    return voice.name


class Pipeline:
    """Answers requests with the engines that they are admitted to. Holds no state between requests.

    A request is admitted once its media are there: a slow file keeps no place in an engine.
    """

    def __init__(
        self,
        perception: MediaPreprocessor,
        admit: Admit,
        tokenizer: ThinkerTokenizer,
        context_length: int,
        segmenting: SegmentSettings,
        clock: Clock | None = None,
        open_voice: OpenVoice = presets_only,
        sample_rate: int = 44_100,
        memory: MediaMemory | None = None,
    ) -> None:
        """`memory` counts features that wait for the thinker; None where nobody shares it."""
        self._perception, self._admit = perception, admit
        self._memory = memory or MediaMemory(sys.maxsize)
        self._tokenizer, self._context_length = tokenizer, context_length
        self._segmenting, self._clock = segmenting, clock or SystemClock()
        self._open_voice, self._sample_rate = open_voice, sample_rate

    async def respond(self, request: ChatRequest) -> AsyncGenerator[Event, None]:
        """Answer a chat with text and, if a voice is given, speech."""
        tally = RequestUsage()
        with stage("preprocess"):
            voice = await self._voice(request)
            # What lies decoded in memory can be searched for speech, a recalled embedding can not.
            open_part = partial(
                self._perception.open,
                recall=not request.needs_speech,
                tenant=request.tenant,
                priority=request.priority,
            )
            media = await gather_or_cancel(map(open_part, request.media))
            is_silent = request.needs_speech and not await has_speech(media)
            prompt = await run_off_loop(
                text_size(request),
                preprocess,
                request,
                media,
                self._tokenizer,
                self._context_length,
            )
        if is_silent:
            # A model that is given silence to write down makes something up.
            yield tally.finished()
            return
        tally.count_media(media)
        # Each goes to the encoder of its kind; all are under way at once.
        embeddings = await gather_or_cancel(map(self._perception.encode, media))
        with stage("aggregate"):
            asked = aggregate(request, prompt, media, embeddings, self._context_length)
        waiting_bytes = sum(one.layout.nbytes for one in embeddings)
        del media, embeddings  # Pixels need not stay in memory until the last token.
        async with AsyncExitStack() as stack:
            with self._memory.hold(request.tenant, waiting_bytes):
                engines = await stack.enter_async_context(self._admit(request))
            speaker = self._speaker(request, engines, voice) if request.voice else None
            outputs = await stack.enter_async_context(
                aclosing(_think(engines.thinker, asked, tally))
            )
            # Tokens may be there long before one of them is to be seen, in a call for instance.
            first = await anext(outputs, None)
            yield Started()
            if first is not None:
                answer = self._answer(chain(first, outputs), request, speaker, tally)
                async with aclosing(answer) as events:
                    async for event in events:
                        yield event
        yield tally.finished()

    async def speak(self, request: SpeechRequest) -> AsyncGenerator[Event, None]:
        """Read a text aloud."""
        voice = await self._voice(request)
        async with self._admit(request) as engines:
            speaker = self._speaker(request, engines, voice)
            async with aclosing(speak(speaker, request)) as events:
                async for event in events:
                    yield event

    async def stream_speech(
        self, request: SpeechRequest, text: AsyncGenerator[str, None]
    ) -> AsyncGenerator[Event, None]:
        """Read `text` aloud while it is written, in place of the request's. Closes it."""
        tally = RequestUsage()
        async with aclosing(text):
            voice = await self._voice(request)
            async with self._admit(request) as engines:
                speaker = self._speaker(request, engines, voice)
                said = say(speaker, text, self._segmenting, self._clock, tally)
                async with aclosing(said) as events:
                    async for event in events:
                        yield event
        yield tally.finished()

    async def _voice(self, request: ChatRequest | SpeechRequest) -> str | ClonedVoice | None:
        """What the talker is told of the voice. Raises `InvalidRequest` for a recording that
        cannot be used."""
        if request.voice is None:
            return None
        with stage("voice"):
            return await self._open_voice(request.voice, request.tenant)

    def _speaker(
        self,
        request: ChatRequest | SpeechRequest,
        engines: Engines,
        voice: str | ClonedVoice | None,
    ) -> Speaker:
        assert request.voice is not None
        common = (engines.talker, voice, request.voice.seed, self._sample_rate)
        if isinstance(request, ChatRequest):
            return Speaker(*common)
        return Speaker(*common, request.manner, patches_in(request.max_seconds))

    def _answer(
        self,
        outputs: AsyncGenerator[ThinkerOutput, None],
        request: ChatRequest,
        speaker: Speaker | None,
        tally: RequestUsage,
    ) -> AsyncGenerator[Event, None]:
        """What tokens say, as events, and spoken where somebody speaks."""
        parts = parse_output(self._decode(outputs, request, tally), request)
        if speaker is None or request.calling.forced:
            return to_events(parts, tally)
        # Text never waits for speech: the spoken copy is not bounded, the answer is.
        text = Tee(parts)
        words = only_text(text.second())
        spoken = say(speaker, words, self._segmenting, self._clock, tally)
        return merge(to_events(text.first(), tally), spoken)

    async def _decode(
        self,
        outputs: AsyncGenerator[ThinkerOutput, None],
        request: ChatRequest,
        tally: RequestUsage,
    ) -> AsyncGenerator[str, None]:
        tokenizer = ToolTokenDecoder(self._tokenizer) if request.tools else self._tokenizer
        decoder = TextDecoder(tokenizer, request.sampling.stop)
        with stage("decode") as span:
            async with aclosing(outputs):
                async for output in outputs:
                    tally.note_logprobs(output.logprobs)
                    if text := decoder.push(output.token_ids):
                        span.record_output()
                        yield text
                    if decoder.stopped:
                        # Nothing more can come; the thinker is not kept at work for it.
                        tally.reason = "stop"
                        return
            if rest := decoder.finish():
                yield rest


async def _think(
    thinker: Engine, request: ThinkerRequest, tally: RequestUsage
) -> AsyncGenerator[ThinkerOutput, None]:
    with stage("thinker") as span:
        async with aclosing(thinker.submit(request)) as outputs:
            async for output in outputs:
                span.record_output()
                tally.count_tokens(output)
                yield output


def parse_output(
    written: AsyncGenerator[str, None], request: ChatRequest
) -> AsyncGenerator[Part, None]:
    """Thoughts, calls and text of an answer."""
    parts: AsyncGenerator[Any, None] = written
    if request.thinking:
        parts = with_thoughts(parts)
    return with_calls(parts, request.calling.parallel) if request.tools else parts


async def to_events(
    answer: AsyncGenerator[Part, None], tally: RequestUsage
) -> AsyncGenerator[Event, None]:
    """Parts as events. This is who drives the answer, so what the tally has noted since the last
    part belongs to this one."""
    async with aclosing(answer):
        async for part in answer:
            logprobs = tally.take_logprobs()
            match part:
                case str():
                    yield TextDelta(part, logprobs)
                case Thought(text):
                    tally.note_thought()
                    yield ThoughtDelta(text)
                case ToolCall():
                    yield ToolCalled(part)
                case InvalidToolCall():
                    tally.invalid_calls += 1
    if rest := tally.take_logprobs():
        yield TextDelta("", rest)
