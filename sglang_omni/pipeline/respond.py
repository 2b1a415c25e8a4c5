"""The eight stages of a chat.

    preprocess -> { image encoder | audio encoder } -> aggregate -> thinker -> decode -> segment
               -> talker (CFM + audio VAE)

A text chat skips stages 2 and 3, and also 7 and 8 unless its answer is spoken. Cancelling or
closing a generator here closes the engine streams below it, and so aborts the work inside the
engines.
"""

import sys
from collections.abc import AsyncGenerator, Callable
from contextlib import AbstractAsyncContextManager, AsyncExitStack, aclosing
from dataclasses import dataclass
from functools import partial

from sglang_omni.engines.media_decoder.memory import MediaMemory
from sglang_omni.engines.runtime.process import Engine
from sglang_omni.engines.served_by import record_replica
from sglang_omni.engines.thinker.contract import ThinkerOutput, ThinkerRequest
from sglang_omni.models.chat import ChatFormat
from sglang_omni.models.speech_text import SpeechText
from sglang_omni.observability.trace import stage
from sglang_omni.pipeline.answer_parser import AnswerParser
from sglang_omni.pipeline.answer_stream import select_text, stream_parts, to_events
from sglang_omni.pipeline.async_streams import Tee, gather_or_cancel, merge
from sglang_omni.pipeline.decode import TextDecoder
from sglang_omni.pipeline.media_preprocessor import MediaPreprocessor, list_inputs
from sglang_omni.pipeline.preprocess import aggregate, estimate_text_work, preprocess
from sglang_omni.pipeline.request import ChatRequest, Event, SpeechRequest
from sglang_omni.pipeline.segment import Clock, SegmentSettings, SystemClock
from sglang_omni.pipeline.speakers import ResolveVoice, SpeakerFactory, resolve_preset
from sglang_omni.pipeline.speech import (
    RequestUsage,
    Speaker,
    speak,
    speak_stream,
)
from sglang_omni.pipeline.transcribe import has_speech
from sglang_omni.pipeline.work_threads import run_off_loop


@dataclass(frozen=True)
class Engines:
    """The engines of one request."""

    thinker: Engine
    talker: Engine


Admit = Callable[[ChatRequest | SpeechRequest], AbstractAsyncContextManager[Engines]]


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
        speech_languages: tuple[str, ...] = (),
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
            speech_languages: ISO 639-1 codes of the languages that the model speaks, if known.
        """
        self._media_preprocessor, self._admit = media_preprocessor, admit
        self._media_memory = media_memory or MediaMemory(sys.maxsize)
        self._chat, self._context_length = chat, context_length
        self._segment_settings, self._clock = segment_settings, clock or SystemClock()
        self._speakers = SpeakerFactory(
            resolve_voice, speech_text, sample_rate, frame_s, speech_languages
        )

    async def respond(self, request: ChatRequest) -> AsyncGenerator[Event, None]:
        """Answer a chat with text and, if a voice is given, speech."""
        usage = RequestUsage()
        with stage("preprocess"):
            voice = await self._speakers.resolve(request.voice, request.tenant)
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
        media = list_inputs(media)
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
            speaker = (
                self._speakers.create(request.voice, request.reading, engines.talker, voice)
                if request.voice
                else None
            )
            outputs = _run_thinker(engines.thinker, thinker_request, usage)
            has_grammar = thinker_request.sampling.grammar is not None
            answer = self._answer(outputs, request, speaker, usage, has_grammar)
            async with aclosing(answer) as events:
                async for event in events:
                    yield event
        yield usage.to_event()

    async def speak(self, request: SpeechRequest) -> AsyncGenerator[Event, None]:
        """Speak a text."""
        # One after the other, so that a request has at most one recording under way.
        voices = [
            await self._speakers.resolve(turn.voice, request.tenant) for turn in request.turns
        ]
        async with self._admit(request) as engines:
            speakers = [
                self._speakers.create_for_turn(request, index, engines.talker, voice)
                for index, voice in enumerate(voices)
            ]
            async with aclosing(speak(speakers[0], request, *speakers[1:])) as events:
                async for event in events:
                    yield event

    async def stream_speech(
        self, request: SpeechRequest, text: AsyncGenerator[str, None]
    ) -> AsyncGenerator[Event, None]:
        """Speak `text` while it is written, instead of the request's text. Closes `text`."""
        usage = RequestUsage()
        async with aclosing(text):
            voice = await self._speakers.resolve(request.voice, request.tenant)
            async with self._admit(request) as engines:
                speaker = self._speakers.create_for_turn(request, 0, engines.talker, voice)
                speech = speak_stream(speaker, text, self._segment_settings, self._clock, usage)
                async with aclosing(speech) as events:
                    async for event in events:
                        yield event
        yield usage.to_event()

    def _answer(
        self,
        outputs: AsyncGenerator[ThinkerOutput, None],
        request: ChatRequest,
        speaker: Speaker | None,
        usage: RequestUsage,
        has_grammar: bool,
    ) -> AsyncGenerator[Event, None]:
        """Turn tokens into events of text and, with a speaker, of speech."""
        tokenizer = self._chat.tool_tokens if request.tools else self._chat
        decoder = TextDecoder(tokenizer, request.sampling.stop)
        parser = AnswerParser(request, self._chat, stream_arguments=has_grammar)
        parts = stream_parts(outputs, decoder, parser, usage)
        if speaker is None or request.tool_choice.forced:
            return to_events(parts, usage)
        # Text never waits for speech: the copy to speak is not bounded, but the answer is.
        tee = Tee(parts)
        text = select_text(tee.read_copy())
        speech = speak_stream(speaker, text, self._segment_settings, self._clock, usage)
        return merge(to_events(tee.read(), usage), speech)


async def _run_thinker(
    thinker: Engine, request: ThinkerRequest, usage: RequestUsage
) -> AsyncGenerator[ThinkerOutput, None]:
    with stage("thinker") as span:
        async with aclosing(thinker.submit(request)) as outputs:
            record_replica(span, thinker)
            async for output in outputs:
                span.record_output()
                usage.set_output(output)
                yield output
