"""The eight stages of a chat.

    preprocess -> { image encoder | audio encoder } -> aggregate -> thinker -> decode -> segment
               -> talker (CFM + audio VAE)

A text chat skips stages 2 and 3, and also 7 and 8 unless its answer is spoken. Cancelling or
closing a generator here closes the engine streams below it, and so aborts the work inside the
engines.
"""

import sys
from collections.abc import AsyncGenerator, Awaitable, Callable
from contextlib import AbstractAsyncContextManager, AsyncExitStack, aclosing
from dataclasses import dataclass
from functools import partial
from typing import Any

from sglang_omni.engines.media_decoder.memory import MediaMemory
from sglang_omni.engines.runtime.process import Engine
from sglang_omni.engines.speech.contract import ClonedVoice
from sglang_omni.engines.thinker.contract import ThinkerOutput, ThinkerRequest
from sglang_omni.models.chat import ChatFormat, Reasoning
from sglang_omni.models.speech_text import SpeechText
from sglang_omni.observability.trace import stage
from sglang_omni.pipeline.async_streams import Tee, gather_or_cancel, merge
from sglang_omni.pipeline.decode import TextDecoder
from sglang_omni.pipeline.media_preprocessor import MediaPreprocessor
from sglang_omni.pipeline.preprocess import aggregate, estimate_text_work, preprocess
from sglang_omni.pipeline.reasoning_parser import split_reasoning
from sglang_omni.pipeline.request import (
    ChatRequest,
    Event,
    ReasoningDelta,
    SpeechRequest,
    Started,
    TextDelta,
    ToolCalled,
    Voice,
)
from sglang_omni.pipeline.segment import Clock, SegmentSettings, SystemClock
from sglang_omni.pipeline.speech import (
    RequestUsage,
    Speaker,
    seconds_to_patches,
    speak,
    speak_stream,
)
from sglang_omni.pipeline.tool_call_stream import Part, select_text, split_tool_calls
from sglang_omni.pipeline.transcribe import has_speech
from sglang_omni.pipeline.work_threads import run_off_loop
from sglang_omni.protocol.tools import InvalidToolCall, ToolCall

ResolveVoice = Callable[[Voice, str | None], Awaitable[str | ClonedVoice | None]]


@dataclass(frozen=True)
class Engines:
    """The engines of one request."""

    thinker: Engine
    talker: Engine


Admit = Callable[[ChatRequest | SpeechRequest], AbstractAsyncContextManager[Engines]]


async def resolve_preset(voice: Voice, tenant: str | None = None) -> str:
    """Return the name of a preset voice, for a pipeline that does not clone voices."""
    assert voice.source is None, "this pipeline has preset voices only"
    return voice.name


class Pipeline:
    """Answer requests with the engines that they are admitted to. Holds no state between requests.

    A request is admitted after its media are loaded, so a slow download takes no engine capacity.
    """

    def __init__(
        self,
        media_preprocessor: MediaPreprocessor,
        admit: Admit,
        chat: ChatFormat,
        context_length: int,
        segment_settings: SegmentSettings,
        clock: Clock | None = None,
        resolve_voice: ResolveVoice = resolve_preset,
        media_memory: MediaMemory | None = None,
        *,
        speech_text: SpeechText,
        sample_rate: int,
        frame_s: float,
    ) -> None:
        """Take the parts of a pipeline.

        Args:
            media_preprocessor: Loads and encodes media.
            admit: Waits for capacity and gives the engines of one request.
            chat: The model's prompt, tool and reasoning formats.
            context_length: The thinker's context, in tokens.
            segment_settings: How an answer is split for the talker.
            clock: The time; None for the event loop's.
            resolve_voice: Turns a request's voice into the talker's.
            media_memory: Counts features that wait for the thinker; None for no limit.
            speech_text: The model's text front end.
            sample_rate: The talker's sample rate, in Hz.
            frame_s: Seconds of speech in one patch of the talker.
        """
        self._media_preprocessor, self._admit = media_preprocessor, admit
        self._media_memory = media_memory or MediaMemory(sys.maxsize)
        self._chat, self._context_length = chat, context_length
        self._segment_settings, self._clock = segment_settings, clock or SystemClock()
        self._resolve_voice, self._speech_text = resolve_voice, speech_text
        self._sample_rate, self._frame_s = sample_rate, frame_s

    async def respond(self, request: ChatRequest) -> AsyncGenerator[Event, None]:
        """Answer a chat with text and, if a voice is given, speech."""
        usage = RequestUsage()
        with stage("preprocess"):
            voice = await self._voice(request)
            # Speech is detected in decoded samples, which a cached embedding does not have.
            open_part = partial(
                self._media_preprocessor.open,
                use_cache=not request.needs_speech,
                tenant=request.tenant,
                priority=request.priority,
            )
            media = await gather_or_cancel(map(open_part, request.media))
            is_silent = request.needs_speech and not await has_speech(media)
            prompt = await run_off_loop(
                estimate_text_work(request),
                preprocess,
                request,
                media,
                self._chat,
                self._context_length,
            )
        if is_silent:
            # A model that transcribes silence invents words.
            yield usage.to_event()
            return
        usage.add_media(media)
        # Each medium goes to the encoder of its kind, all concurrently.
        embeddings = await gather_or_cancel(map(self._media_preprocessor.encode, media))
        with stage("aggregate"):
            thinker_request = aggregate(
                request, prompt, media, embeddings, self._chat, self._context_length
            )
        feature_bytes = sum(embedding.layout.nbytes for embedding in embeddings)
        del media, embeddings  # Pixels need not stay in memory until the last token.
        async with AsyncExitStack() as stack:
            with self._media_memory.hold(request.tenant, feature_bytes):
                engines = await stack.enter_async_context(self._admit(request))
            speaker = self._speaker(request, engines, voice) if request.voice else None
            outputs = _run_thinker(engines.thinker, thinker_request, usage)
            answer = self._answer(outputs, request, speaker, usage)
            async with aclosing(answer) as events:
                async for event in events:
                    yield event
        yield usage.to_event()

    async def speak(self, request: SpeechRequest) -> AsyncGenerator[Event, None]:
        """Speak a text."""
        voice = await self._voice(request)
        async with self._admit(request) as engines:
            speaker = self._speaker(request, engines, voice)
            async with aclosing(speak(speaker, request)) as events:
                async for event in events:
                    yield event

    async def stream_speech(
        self, request: SpeechRequest, text: AsyncGenerator[str, None]
    ) -> AsyncGenerator[Event, None]:
        """Speak `text` while it is written, instead of the request's text. Closes `text`."""
        usage = RequestUsage()
        async with aclosing(text):
            voice = await self._voice(request)
            async with self._admit(request) as engines:
                speaker = self._speaker(request, engines, voice)
                speech = speak_stream(speaker, text, self._segment_settings, self._clock, usage)
                async with aclosing(speech) as events:
                    async for event in events:
                        yield event
        yield usage.to_event()

    async def _voice(self, request: ChatRequest | SpeechRequest) -> str | ClonedVoice | None:
        """Return the voice to pass to the talker.

        Raises `InvalidRequest` for a recording that cannot be used.
        """
        if request.voice is None:
            return None
        with stage("voice"):
            return await self._resolve_voice(request.voice, request.tenant)

    def _speaker(
        self,
        request: ChatRequest | SpeechRequest,
        engines: Engines,
        voice: str | ClonedVoice | None,
    ) -> Speaker:
        assert request.voice is not None
        speech = (self._speech_text, self._frame_s)
        common = (engines.talker, *speech, voice, request.voice.seed, self._sample_rate)
        if isinstance(request, ChatRequest):
            return Speaker(*common)
        max_patches = seconds_to_patches(request.max_seconds, self._frame_s)
        return Speaker(*common, request.style, max_patches)

    def _answer(
        self,
        outputs: AsyncGenerator[ThinkerOutput, None],
        request: ChatRequest,
        speaker: Speaker | None,
        usage: RequestUsage,
    ) -> AsyncGenerator[Event, None]:
        """Turn tokens into events of text and, with a speaker, of speech."""
        parts = parse_output(self._decode(outputs, request, usage), request, self._chat)
        if speaker is None or request.tool_choice.forced:
            return to_events(parts, usage)
        # Text never waits for speech: the copy to speak is not bounded, but the answer is.
        tee = Tee(parts)
        text = select_text(tee.read_copy())
        speech = speak_stream(speaker, text, self._segment_settings, self._clock, usage)
        return merge(to_events(tee.read(), usage), speech)

    async def _decode(
        self,
        outputs: AsyncGenerator[ThinkerOutput, None],
        request: ChatRequest,
        usage: RequestUsage,
    ) -> AsyncGenerator[str | Started, None]:
        """Yield `Started` with the first tokens, which may not be visible, and then the text."""
        tokenizer = self._chat.tool_tokens if request.tools else self._chat
        decoder = TextDecoder(tokenizer, request.sampling.stop)
        async with aclosing(outputs):
            output = await anext(outputs, None)
            yield Started()
            with stage("decode") as span:
                while output is not None:
                    usage.add_logprobs(output.logprobs)
                    if text := decoder.push(output.token_ids):
                        span.record_output()
                        yield text
                    if decoder.stopped:
                        # Nothing more can follow, so the thinker is aborted.
                        usage.reason = "stop"
                        return
                    output = await anext(outputs, None)
                if rest := decoder.finish():
                    yield rest


async def _run_thinker(
    thinker: Engine, request: ThinkerRequest, usage: RequestUsage
) -> AsyncGenerator[ThinkerOutput, None]:
    with stage("thinker") as span:
        async with aclosing(thinker.submit(request)) as outputs:
            async for output in outputs:
                span.record_output()
                usage.set_output(output)
                yield output


def parse_output(
    written: AsyncGenerator[str | Started, None], request: ChatRequest, chat: ChatFormat
) -> AsyncGenerator[Part | Started, None]:
    """Split an answer into reasoning, tool calls and text."""
    parts: AsyncGenerator[Any, None] = written
    if request.thinking:
        parts = split_reasoning(parts, chat.reasoning_parser())
    if not request.tools:
        return parts
    return split_tool_calls(parts, chat.tool_parser(), request.tool_choice.parallel)


async def to_events(
    answer: AsyncGenerator[Part | Started, None], usage: RequestUsage
) -> AsyncGenerator[Event, None]:
    """Turn parts into events.

    This generator drives the answer, so log probabilities that were added since the last part
    belong to the current one.
    """
    async with aclosing(answer):
        async for part in answer:
            logprobs = usage.take_logprobs()
            match part:
                case Started():
                    yield part
                case str():
                    yield TextDelta(part, logprobs)
                case Reasoning(text):
                    usage.mark_reasoning()
                    yield ReasoningDelta(text)
                case ToolCall():
                    yield ToolCalled(part)
                case InvalidToolCall():
                    usage.invalid_calls += 1
    if rest := usage.take_logprobs():
        yield TextDelta("", rest)
