"""Stages 7 and 8: text to segments to speech. A fragment is one talker request."""

import asyncio
import math
from collections.abc import AsyncGenerator, Iterator, Sequence
from contextlib import aclosing
from dataclasses import dataclass, field, replace

from sglang_omni.engines.runtime.process import Engine
from sglang_omni.engines.speech.contract import ClonedVoice, SpeechStyle, TalkerRequest
from sglang_omni.engines.thinker.contract import ThinkerOutput, TokenLogprob
from sglang_omni.models.ming.text.duration import compute_reference_limit_s
from sglang_omni.models.ming.text.front import TextFrontEnd
from sglang_omni.observability.trace import stage
from sglang_omni.pipeline.media_preprocessor import MediaInput
from sglang_omni.pipeline.request import (
    AudioDelta,
    Event,
    Finished,
    FinishReason,
    SpeechRequest,
    TranscriptDelta,
    Usage,
)
from sglang_omni.pipeline.segment import Clock, SegmentSettings, segments
from sglang_omni.pipeline.segment_fader import SegmentFader
from sglang_omni.protocol.errors import InvalidRequest

PATCH_SECONDS = 0.32


@dataclass
class RequestUsage:
    """What one request has used so far; written by its own stages only."""

    reason: FinishReason = "stop"
    split_fragments: int = 0
    patches: int = 0
    invalid_calls: int = 0
    _media: Usage = field(default_factory=Usage)
    _latest: ThinkerOutput | None = None
    _thoughts: int = 0
    _logprobs: list[TokenLogprob] = field(default_factory=list)

    def count_tokens(self, output: ThinkerOutput) -> None:
        """Take over the thinker's totals."""
        self._latest = output
        self.reason = output.finish_reason or self.reason

    def count_media(self, media: Sequence[MediaInput]) -> None:
        """Note what of the prompt is no text."""
        audio = sum(medium.rows for medium in media if medium.grid is None)
        images = sum(medium.rows for medium in media if medium.grid is not None)
        self._media = Usage(prompt_audio_tokens=audio, prompt_image_tokens=images)

    def note_logprobs(self, logprobs: Sequence[TokenLogprob]) -> None:
        """Keep those of new tokens for whoever shows their text."""
        self._logprobs.extend(logprobs)

    def take_logprobs(self) -> tuple[TokenLogprob, ...]:
        """Those that nobody has taken yet."""
        if not self._logprobs:
            return ()
        taken, self._logprobs = tuple(self._logprobs), []
        return taken

    def note_thought(self) -> None:
        """All tokens so far were reasoning."""
        self._thoughts = self._latest.completion_tokens if self._latest else 0

    def finished(self) -> Finished:
        """The last event of the request."""
        usage = replace(self._media, audio_tokens=self.patches, reasoning_tokens=self._thoughts)
        if one := self._latest:
            usage = replace(
                usage,
                prompt_tokens=one.prompt_tokens,
                cached_tokens=one.cached_tokens,
                completion_tokens=one.completion_tokens,
            )
        return Finished(self.reason, usage, self.invalid_calls)


@dataclass(frozen=True)
class Speaker:
    """Who speaks in one request, and how: the same voice, seed and manner for every fragment."""

    talker: Engine
    voice: str | ClonedVoice | None
    seed: int
    sample_rate: int
    manner: SpeechStyle = field(default_factory=SpeechStyle)
    most_patches: int | None = None

    def left(self, tally: RequestUsage) -> int | None:
        """How many patches may still be made, None for as many as the text takes."""
        return None if self.most_patches is None else self.most_patches - tally.patches


def patches_in(seconds: float | None) -> int | None:
    """How many patches make up no more than so much speech, at least one."""
    return None if seconds is None else max(1, math.floor(seconds / PATCH_SECONDS))


async def speak(speaker: Speaker, request: SpeechRequest) -> AsyncGenerator[Event, None]:
    """Read a whole text aloud. Raises `InvalidRequest` when nothing in it can be spoken."""
    tally = RequestUsage()
    pieces = (
        iter((request.text,)) if request.verbatim else TextFrontEnd().split_fragments(request.text)
    )
    limit = _description_limit(request) if request.verbatim else None
    async with aclosing(_synthesise(speaker, pieces, tally, limit)) as events:
        async for event in events:
            yield event
    if not tally.split_fragments:
        raise InvalidRequest("there is nothing to speak in this text", param="input")
    yield tally.finished()


def _description_limit(request: SpeechRequest) -> int | None:
    """How many patches of music or sound are made: what was asked for, or the reference's limit."""
    seconds = request.max_seconds
    return patches_in(compute_reference_limit_s(request.text) if seconds is None else seconds)


async def say(
    speaker: Speaker,
    text: AsyncGenerator[str, None],
    settings: SegmentSettings,
    clock: Clock,
    tally: RequestUsage,
) -> AsyncGenerator[Event, None]:
    """Speak a text while it is written, segment by segment, in order. Closes `text`."""
    front_end = TextFrontEnd()
    with stage("segment") as span:
        async with aclosing(text), aclosing(segments(text, settings, clock)) as pieces:
            async for segment in pieces:
                span.output()
                yield TranscriptDelta(segment.source)
                spoken = _synthesise(speaker, front_end.split_fragments(segment.text), tally)
                async with aclosing(spoken) as events:
                    async for event in events:
                        yield event


async def _synthesise(
    speaker: Speaker, pieces: Iterator[str], tally: RequestUsage, limit: int | None = None
) -> AsyncGenerator[Event, None]:
    """Speak the pieces of a text; each gets `limit` patches, or what its text can take."""
    # Cut and put into words off the event loop: a long sentence takes milliseconds.
    while (text := await asyncio.to_thread(next, pieces, None)) is not None:
        left = speaker.left(tally)
        if left is not None and left <= 0:
            tally.reason = "length"
            return
        # The fragment's number keys its noise, so equal lists of fragments sound equal.
        number = tally.split_fragments
        tally.split_fragments += 1
        request = TalkerRequest(
            text, speaker.voice, speaker.seed, number, limit, manner=speaker.manner
        )
        async with aclosing(_fragment(speaker, request, tally, left)) as events:
            async for event in events:
                yield event


async def _fragment(
    speaker: Speaker, request: TalkerRequest, tally: RequestUsage, left: int | None
) -> AsyncGenerator[Event, None]:
    """One talker request. It ends early once no more than `left` patches would be left."""
    edges = SegmentFader(speaker.sample_rate, follows=request.segment > 0)
    with stage("talker") as span:
        async with aclosing(speaker.talker.submit(request)) as chunks:
            async for chunk in chunks:
                tally.patches += chunk.patches
                if left is not None:
                    left -= chunk.patches
                last = chunk.last or (left is not None and left <= 0)
                pcm = edges.push(chunk.pcm, last)
                if pcm.size:
                    span.output()
                    yield AudioDelta(pcm)
                if not chunk.last and last:
                    tally.reason = "length"
                    return
