"""Stages 7 and 8: text to segments to speech. A fragment is one talker request."""

import asyncio
from collections.abc import AsyncGenerator, Sequence
from contextlib import aclosing
from dataclasses import dataclass, field, replace

from sglang_omni.engine.process import Engine
from sglang_omni.errors import InvalidRequest
from sglang_omni.models.ming.text.front import fragments
from sglang_omni.observe.trace import stage
from sglang_omni.pipeline.request import (
    AudioDelta,
    Event,
    Finished,
    FinishReason,
    SpeechRequest,
    TranscriptDelta,
    Usage,
    Voice,
)
from sglang_omni.pipeline.segment import Clock, SegmentSettings, segments
from sglang_omni.talker.contract import TalkerRequest
from sglang_omni.thinker.contract import ThinkerOutput


@dataclass
class Tally:
    """What one request has used so far; written by its own stages only."""

    usage: Usage = field(default_factory=Usage)
    reason: FinishReason = "stop"
    fragments: int = 0
    patches: int = 0

    def count_tokens(self, output: ThinkerOutput) -> None:
        """Take over the thinker's totals."""
        self.usage = replace(
            self.usage,
            prompt_tokens=output.prompt_tokens,
            cached_tokens=output.cached_tokens,
            completion_tokens=output.completion_tokens,
        )
        self.reason = output.finish_reason or self.reason

    def finished(self) -> Finished:
        """The last event of the request."""
        return Finished(self.reason, replace(self.usage, audio_tokens=self.patches))


async def speak(talker: Engine, request: SpeechRequest) -> AsyncGenerator[Event, None]:
    """Read a whole text aloud. Raises `InvalidRequest` when nothing in it can be spoken."""
    tally = Tally()
    spoken = await _fragments(request.text)
    if not spoken:
        raise InvalidRequest("there is nothing to speak in this text", param="input")
    async with aclosing(_synthesise(talker, spoken, request.voice, tally)) as events:
        async for event in events:
            yield event
    yield tally.finished()


async def say(
    talker: Engine,
    text: AsyncGenerator[str, None],
    voice: Voice,
    settings: SegmentSettings,
    clock: Clock,
    tally: Tally,
) -> AsyncGenerator[Event, None]:
    """Speak a text while it is written, segment by segment, in order. Closes `text`."""
    with stage("segment") as span:
        async with aclosing(text), aclosing(segments(text, settings, clock)) as pieces:
            async for segment in pieces:
                span.output()
                yield TranscriptDelta(segment.source)
                spoken = await _fragments(segment.text)
                async with aclosing(_synthesise(talker, spoken, voice, tally)) as events:
                    async for event in events:
                        yield event


async def _synthesise(
    talker: Engine, spoken: Sequence[str], voice: Voice, tally: Tally
) -> AsyncGenerator[Event, None]:
    for text in spoken:
        # The fragment's number keys its noise, so equal lists of fragments sound equal.
        request = TalkerRequest(text, voice.name, voice.seed, segment=tally.fragments)
        tally.fragments += 1
        with stage("talker") as span:
            async with aclosing(talker.submit(request)) as chunks:
                async for chunk in chunks:
                    tally.patches += chunk.patches
                    if chunk.pcm.size:
                        span.output()
                        yield AudioDelta(chunk.pcm)


async def _fragments(text: str) -> list[str]:
    """Cut and normalise off the event loop: a long text takes milliseconds."""
    return await asyncio.to_thread(fragments, text)
