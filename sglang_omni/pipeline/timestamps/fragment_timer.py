"""Locate the segments and words of a request in its speech, fragment by fragment."""

import asyncio
from collections.abc import AsyncGenerator, Iterator, Sequence
from contextlib import aclosing
from dataclasses import dataclass

import numpy as np

from sglang_omni.models.written_words import WordLetters, WrittenFragment, WrittenText
from sglang_omni.pipeline.request import AudioDelta, Event, TimedSegment, TimedWord
from sglang_omni.pipeline.timestamps.align import Span, align_tokens
from sglang_omni.pipeline.timestamps.speech_runs import LevelMeter, find_speech_runs
from sglang_omni.pipeline.timestamps.spoken_tokens import SpokenToken, split_tokens


@dataclass(frozen=True)
class FragmentTimer:
    """Locates the fragments of one speaker.

    Attributes:
        sample_rate: The talker's rate in Hz.
        has_words: Whether the words of each segment are located too.
        written: The words that the front end has read. Only the task of the request uses it.
        voice: The name of the voice, None if it has none.
        turn: Index of the speaker's turn.
    """

    sample_rate: int
    has_words: bool
    written: WrittenText
    voice: str | None = None
    turn: int = 0

    async def time_fragment(
        self, text: str, start: int, events: AsyncGenerator[Event, None]
    ) -> AsyncGenerator[Event, None]:
        """Yield the events of one fragment, and then where its words are.

        Args:
            text: The fragment as it is spoken.
            start: Number of samples before it.
            events: Its speech.
        """
        meter, num_samples = LevelMeter(self.sample_rate), 0
        async with aclosing(events):
            async for event in events:
                if isinstance(event, AudioDelta):
                    num_samples += event.pcm.size
                    if self.has_words:
                        meter.push(event.pcm)
                yield event
        start_s, end_s = start / self.sample_rate, (start + num_samples) / self.sample_rate
        # The alignment of a long fragment takes milliseconds.
        yield await asyncio.to_thread(self._locate, text, meter.finish(), start_s, end_s)

    def _locate(self, text: str, levels: np.ndarray, start_s: float, end_s: float) -> TimedSegment:
        tokens = split_tokens(text)
        written = self.written.take(text) or _to_written(text, tokens)
        words: tuple[TimedWord, ...] = ()
        if self.has_words:
            spans = align_tokens(tokens, find_speech_runs(levels))
            words = tuple(
                TimedWord(word.text, min(start_s + first, end_s), min(start_s + last, end_s))
                for word, (first, last) in _locate_words(written.words, tokens, spans)
            )
        return TimedSegment(written.text, start_s, end_s, words, self.voice, self.turn)


def _to_written(text: str, tokens: Sequence[SpokenToken]) -> WrittenFragment:
    """Return the spoken words in place of the written ones, which are not known."""
    words = (WordLetters(token.text, token.first, token.end) for token in tokens)
    return WrittenFragment(text, tuple(words))


def _locate_words(
    words: Sequence[WordLetters], tokens: Sequence[SpokenToken], spans: Sequence[Span]
) -> Iterator[tuple[WordLetters, Span]]:
    """Yield each word with the span from the first to the last token that speaks it."""
    index = 0
    for word in words:
        while tokens[index].end <= word.first:
            index += 1
        last = index
        while tokens[last].end < word.end:
            last += 1
        yield word, (spans[index][0], spans[last][1])
