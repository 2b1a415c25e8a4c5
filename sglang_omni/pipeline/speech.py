"""Stages 7 and 8: split text into fragments and speak them. Each fragment is a talker request."""

import asyncio
import math
from collections.abc import AsyncGenerator, Iterator, Sequence
from contextlib import aclosing
from dataclasses import dataclass, field, replace

import numpy as np

from sglang_omni.engines.runtime.process import Engine
from sglang_omni.engines.served_by import record_replica
from sglang_omni.engines.speech.contract import ClonedVoice, TalkerRequest
from sglang_omni.engines.thinker.contract import FinishReason, ThinkerOutput, TokenLogprob
from sglang_omni.models.scripts import drop_unspoken_words, find_unspoken_words
from sglang_omni.models.speech_text import (
    DEFAULT_READING,
    ReadingOptions,
    SpeechStyle,
    SpeechText,
    TextFrontEnd,
)
from sglang_omni.observability.trace import stage
from sglang_omni.pipeline.media_preprocessor import MediaInput
from sglang_omni.pipeline.request import (
    AudioDelta,
    Event,
    Finished,
    Pause,
    SpeechRequest,
    SpeechTurn,
    TranscriptDelta,
    UnspokenText,
    Usage,
)
from sglang_omni.pipeline.segment import Clock, SegmentSettings, stream_segments
from sglang_omni.pipeline.segment_fader import SegmentFader
from sglang_omni.pipeline.timestamps.fragment_timer import FragmentTimer
from sglang_omni.protocol.errors import InvalidRequest

# Silence between two speakers, beside what their own speech starts and ends with.
TURN_PAUSE_S = 0.25


@dataclass
class RequestUsage:
    """What one request has used so far. Only the stages of that request write it."""

    reason: FinishReason = "stop"
    fragments: int = 0
    patches: int = 0
    samples: int = 0
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

    `sample_rate` is in Hz. `max_patches` limits the whole request; None means no limit. `languages`
    are those that the model speaks (ISO 639-1), none if that is not known. `timer` locates the
    words in the speech; None if nobody asks for that.
    """

    talker: Engine
    speech_text: SpeechText
    frame_s: float
    voice: str | ClonedVoice | None
    seed: int
    sample_rate: int
    style: SpeechStyle = field(default_factory=SpeechStyle)
    max_patches: int | None = None
    reading: ReadingOptions = DEFAULT_READING
    languages: tuple[str, ...] = ()
    timer: FragmentTimer | None = None

    def open_front_end(self) -> TextFrontEnd:
        """Return the text front end of the request."""
        if self.timer is None:
            return self.speech_text.open_front_end(self.reading)
        return self.speech_text.open_front_end(self.reading, self.timer.written)

    def drop_unspoken_words(self, text: str) -> tuple[str, tuple[str, ...]]:
        """Return the text without the words that the model does not speak, and those words."""
        lexicon = self.reading.lexicon
        words = find_unspoken_words(text, self.languages, len(text), lexicon)
        return drop_unspoken_words(text, self.languages, lexicon), tuple(words)

    def patches_left(self, usage: RequestUsage) -> int | None:
        """Return how many patches the request may still produce, None for no limit."""
        return None if self.max_patches is None else self.max_patches - usage.patches


def seconds_to_patches(seconds: float | None, frame_s: float) -> int | None:
    """Return how many patches of `frame_s` fit in `seconds`, at least one; None for None."""
    return None if seconds is None else max(1, math.floor(seconds / frame_s))


async def speak(
    speaker: Speaker, request: SpeechRequest, *later_speakers: Speaker
) -> AsyncGenerator[Event, None]:
    """Speak a complete text, or the turns of several speakers.

    Raises `InvalidRequest` if nothing in it can be spoken.
    """
    usage = RequestUsage()
    if request.verbatim:
        speech = _speak_description(speaker, request, usage)
    else:
        speakers = (speaker, *later_speakers)
        speech = _speak_turns(list(zip(speakers, request.turns, strict=True)), usage)
    async with aclosing(speech) as events:
        async for event in events:
            yield event
    if not usage.fragments:
        raise InvalidRequest("the text has no words to speak", param="input")
    yield usage.to_event()


async def _speak_description(
    speaker: Speaker, request: SpeechRequest, usage: RequestUsage
) -> AsyncGenerator[Event, None]:
    """Make the music or sound that a text describes."""
    max_patches = _max_description_patches(speaker, request)
    fragments = iter((request.text,))
    async with aclosing(_speak_fragments(speaker, fragments, usage, max_patches)) as events:
        async for event in events:
            yield event


async def _speak_turns(
    turns: Sequence[tuple[Speaker, SpeechTurn]], usage: RequestUsage
) -> AsyncGenerator[Event, None]:
    """Read the turns of several speakers aloud, with a short pause between them."""
    for index, (speaker, turn) in enumerate(turns):
        if index and usage.fragments:
            yield _make_silence(TURN_PAUSE_S, speaker, usage)
        async with aclosing(_speak_text(speaker, turn, usage)) as events:
            async for event in events:
                yield event
        if usage.reason == "length":
            return


async def _speak_text(
    speaker: Speaker, turn: SpeechTurn, usage: RequestUsage
) -> AsyncGenerator[Event, None]:
    """Read a text aloud, with its pauses."""
    front_end, position = speaker.open_front_end(), 0
    for pause in (*turn.pauses, Pause(len(turn.text), 0.0)):
        fragments = front_end.split_fragments(turn.text[position : pause.position])
        async with aclosing(_speak_fragments(speaker, fragments, usage)) as events:
            async for event in events:
                yield event
        if usage.reason == "length":
            return
        if pause.seconds:
            yield _make_silence(pause.seconds, speaker, usage)
        position = pause.position


def _make_silence(seconds: float, speaker: Speaker, usage: RequestUsage) -> AudioDelta:
    """Return silence, and count its samples."""
    samples = round(seconds * speaker.sample_rate)
    usage.samples += samples
    return AudioDelta(np.zeros(samples, np.float32))


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
    front_end = speaker.open_front_end()
    stream = stream_segments(text, settings, clock, front_end.safe_cut)
    with stage("segment") as span:
        async with aclosing(text), aclosing(stream) as segments:
            async for segment in segments:
                span.record_output()
                yield TranscriptDelta(segment.source)
                text_to_speak, unspoken = speaker.drop_unspoken_words(segment.source)
                if unspoken:
                    yield UnspokenText(unspoken)
                speech = _speak_fragments(speaker, front_end.split_fragments(text_to_speak), usage)
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
        speech = _speak_fragment(speaker, request, usage, patches_left)
        if speaker.timer is not None:
            speech = speaker.timer.time_fragment(text, usage.samples, speech)
        async with aclosing(speech) as events:
            async for event in events:
                yield event


async def _speak_fragment(
    speaker: Speaker, request: TalkerRequest, usage: RequestUsage, patches_left: int | None
) -> AsyncGenerator[Event, None]:
    """Run one talker request. It ends early when `patches_left` patches have been produced."""
    fader = SegmentFader(speaker.sample_rate, has_previous=request.segment > 0)
    with stage("talker") as span:
        async with aclosing(speaker.talker.submit(request)) as chunks:
            record_replica(span, speaker.talker)
            async for chunk in chunks:
                usage.patches += chunk.patches
                if patches_left is not None:
                    patches_left -= chunk.patches
                last = chunk.last or (patches_left is not None and patches_left <= 0)
                pcm = fader.push(chunk.pcm, last)
                if pcm.size:
                    usage.samples += pcm.size
                    span.record_output()
                    yield AudioDelta(pcm)
                if not chunk.last and last:
                    usage.reason = "length"
                    return
