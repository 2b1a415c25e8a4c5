"""Stages 7 and 8: split text into fragments and speak them. Each fragment is a talker request."""

import asyncio
import math
from collections.abc import AsyncGenerator, Iterator, Sequence
from contextlib import aclosing
from dataclasses import dataclass, field, replace

from sglang_omni.engines.runtime.process import Engine
from sglang_omni.engines.speech.contract import ClonedVoice, TalkerRequest
from sglang_omni.engines.thinker.contract import FinishReason, ThinkerOutput, TokenLogprob
from sglang_omni.models.speech_text import SpeechStyle, SpeechText
from sglang_omni.observability.trace import stage
from sglang_omni.pipeline.media_preprocessor import MediaInput
from sglang_omni.pipeline.request import (
    AudioDelta,
    Event,
    Finished,
    SpeechRequest,
    TranscriptDelta,
    Usage,
)
from sglang_omni.pipeline.segment import Clock, SegmentSettings, stream_segments
from sglang_omni.pipeline.segment_fader import SegmentFader
from sglang_omni.protocol.errors import InvalidRequest


@dataclass
class RequestUsage:
    """What one request has used so far. Only the stages of that request write it."""

    reason: FinishReason = "stop"
    fragments: int = 0
    patches: int = 0
    invalid_calls: int = 0
    _media: Usage = field(default_factory=Usage)
    _latest: ThinkerOutput | None = None
    _reasoning_tokens: int = 0
    _logprobs: list[TokenLogprob] = field(default_factory=list)

    def set_output(self, output: ThinkerOutput) -> None:
        """Take the thinker's totals from its latest output."""
        self._latest = output
        self.reason = output.finish_reason or self.reason

    def add_media(self, media: Sequence[MediaInput]) -> None:
        """Count the prompt tokens of media."""
        audio = sum(medium.rows for medium in media if medium.grid is None)
        images = sum(medium.rows for medium in media if medium.grid is not None)
        self._media = Usage(prompt_audio_tokens=audio, prompt_image_tokens=images)

    def add_logprobs(self, logprobs: Sequence[TokenLogprob]) -> None:
        """Keep log probabilities until the text of their tokens is emitted."""
        self._logprobs.extend(logprobs)

    def take_logprobs(self) -> tuple[TokenLogprob, ...]:
        """Return and clear the log probabilities that were added."""
        if not self._logprobs:
            return ()
        taken, self._logprobs = tuple(self._logprobs), []
        return taken

    def mark_reasoning(self) -> None:
        """Count all completion tokens so far as reasoning."""
        self._reasoning_tokens = self._latest.completion_tokens if self._latest else 0

    def to_event(self) -> Finished:
        """Return the last event of the request."""
        usage = replace(
            self._media, audio_tokens=self.patches, reasoning_tokens=self._reasoning_tokens
        )
        if output := self._latest:
            usage = replace(
                usage,
                prompt_tokens=output.prompt_tokens,
                cached_tokens=output.cached_tokens,
                completion_tokens=output.completion_tokens,
            )
        return Finished(self.reason, usage, self.invalid_calls)


@dataclass(frozen=True)
class Speaker:
    """The voice, seed and style that all fragments of one request share, and their limit.

    `sample_rate` is in Hz. `max_patches` limits the whole request; None means no limit.
    """

    talker: Engine
    speech_text: SpeechText
    frame_s: float
    voice: str | ClonedVoice | None
    seed: int
    sample_rate: int
    style: SpeechStyle = field(default_factory=SpeechStyle)
    max_patches: int | None = None

    def patches_left(self, usage: RequestUsage) -> int | None:
        """Return how many patches the request may still produce, None for no limit."""
        return None if self.max_patches is None else self.max_patches - usage.patches


def seconds_to_patches(seconds: float | None, frame_s: float) -> int | None:
    """Return how many patches of `frame_s` fit in `seconds`, at least one; None for None."""
    return None if seconds is None else max(1, math.floor(seconds / frame_s))


async def speak(speaker: Speaker, request: SpeechRequest) -> AsyncGenerator[Event, None]:
    """Speak a complete text. Raises `InvalidRequest` if nothing in it can be spoken."""
    usage = RequestUsage()
    fragments, max_patches = iter((request.text,)), None
    if request.verbatim:
        max_patches = _max_description_patches(speaker, request)
    else:
        fragments = speaker.speech_text.open_front_end().split_fragments(request.text)
    async with aclosing(_speak_fragments(speaker, fragments, usage, max_patches)) as events:
        async for event in events:
            yield event
    if not usage.fragments:
        raise InvalidRequest("the text has no words to speak", param="input")
    yield usage.to_event()


def _max_description_patches(speaker: Speaker, request: SpeechRequest) -> int | None:
    """Return the limit of patches for music or sound: the request's, or the model's."""
    seconds = request.max_seconds
    if seconds is None:
        seconds = speaker.speech_text.max_description_s(request.text)
    return seconds_to_patches(seconds, speaker.frame_s)


async def speak_stream(
    speaker: Speaker,
    text: AsyncGenerator[str, None],
    settings: SegmentSettings,
    clock: Clock,
    usage: RequestUsage,
) -> AsyncGenerator[Event, None]:
    """Speak a text while it is written, segment by segment, in order. Closes `text`."""
    front_end = speaker.speech_text.open_front_end()
    with stage("segment") as span:
        async with aclosing(text), aclosing(stream_segments(text, settings, clock)) as segments:
            async for segment in segments:
                span.record_output()
                yield TranscriptDelta(segment.source)
                speech = _speak_fragments(speaker, front_end.split_fragments(segment.text), usage)
                async with aclosing(speech) as events:
                    async for event in events:
                        yield event


async def _speak_fragments(
    speaker: Speaker, fragments: Iterator[str], usage: RequestUsage, max_patches: int | None = None
) -> AsyncGenerator[Event, None]:
    """Speak fragments, each at most `max_patches` long; None leaves the limit to the talker."""
    # Splitting and normalization run off the event loop: a long sentence takes milliseconds.
    while (text := await asyncio.to_thread(next, fragments, None)) is not None:
        patches_left = speaker.patches_left(usage)
        if patches_left is not None and patches_left <= 0:
            usage.reason = "length"
            return
        # The fragment's index selects its noise, so equal lists of fragments sound equal.
        index = usage.fragments
        usage.fragments += 1
        request = TalkerRequest(
            text, speaker.voice, speaker.seed, index, max_patches, style=speaker.style
        )
        async with aclosing(_speak_fragment(speaker, request, usage, patches_left)) as events:
            async for event in events:
                yield event


async def _speak_fragment(
    speaker: Speaker, request: TalkerRequest, usage: RequestUsage, patches_left: int | None
) -> AsyncGenerator[Event, None]:
    """Run one talker request. It ends early when `patches_left` patches have been produced."""
    fader = SegmentFader(speaker.sample_rate, has_previous=request.segment > 0)
    with stage("talker") as span:
        async with aclosing(speaker.talker.submit(request)) as chunks:
            async for chunk in chunks:
                usage.patches += chunk.patches
                if patches_left is not None:
                    patches_left -= chunk.patches
                last = chunk.last or (patches_left is not None and patches_left <= 0)
                pcm = fader.push(chunk.pcm, last)
                if pcm.size:
                    span.record_output()
                    yield AudioDelta(pcm)
                if not chunk.last and last:
                    usage.reason = "length"
                    return
