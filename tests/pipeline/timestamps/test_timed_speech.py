"""Speech tells when its segments and words are spoken, and who speaks them."""

from collections.abc import AsyncGenerator
from itertools import pairwise
from typing import Any

import numpy as np
import pytest

from sglang_omni.engines.speech.contract import TalkerChunk, TalkerRequest
from sglang_omni.models.speech_text import ReadingOptions
from sglang_omni.pipeline.request import (
    AudioDelta,
    Event,
    Finished,
    Pause,
    SpeechRequest,
    SpeechTurn,
    TimedSegment,
    Voice,
)
from sglang_omni.pipeline.respond import Pipeline
from sglang_omni.pipeline.segment import SegmentSettings
from sglang_omni.pipeline.speech import TURN_PAUSE_S
from tests.pipeline.engines import SPEECH, TEXT_ONLY, ScriptedEngine, admit_all
from tests.testing.family import CHAT, RATE, VOICES
from tests.testing.needs import needs_rules

VOICE = Voice(VOICES[0], 5)
LETTER_S, GAP_S = 0.07, 0.15
SENTENCE = "The river runs slowly, and the mill turns."


def length_of(word: str) -> float:
    return LETTER_S * len(word.strip(",."))


def sound(seconds: float) -> np.ndarray:
    samples = np.random.default_rng(1).normal(0, 0.1, round(seconds * RATE))
    return samples.astype(np.float32)


async def say_words(request: TalkerRequest) -> AsyncGenerator[TalkerChunk, None]:
    """A talker's script: sound for each word, and silence after it."""
    words = request.text.split()
    for index, word in enumerate(words):
        gap = np.zeros(round(GAP_S * RATE), np.float32)
        pcm = np.concatenate((sound(length_of(word)), gap))
        yield TalkerChunk(pcm, patches=1, last=index == len(words) - 1)


def make_pipeline(talker: ScriptedEngine) -> Pipeline:
    return Pipeline(TEXT_ONLY, admit_all(None, talker), CHAT, 512, SegmentSettings(), **SPEECH)


async def speak(text: str, talker: ScriptedEngine | None = None, **fields: Any) -> list[Event]:
    pipeline = make_pipeline(talker or ScriptedEngine(say_words))
    request = SpeechRequest("timed", text, VOICE, **fields)
    return [event async for event in pipeline.speak(request)]


def segments_of(events: list[Event]) -> list[TimedSegment]:
    return [event for event in events if isinstance(event, TimedSegment)]


def join_audio(events: list[Event]) -> np.ndarray:
    return np.concatenate([event.pcm for event in events if isinstance(event, AudioDelta)])


async def test_nothing_is_timed_unless_it_is_asked_for() -> None:
    assert not segments_of(await speak(SENTENCE))


async def test_the_samples_are_the_same_with_timestamps() -> None:
    plain, timed = await speak(SENTENCE * 3), await speak(SENTENCE * 3, timestamps="word")
    np.testing.assert_array_equal(join_audio(plain), join_audio(timed))


async def test_each_word_has_the_time_of_its_sound() -> None:
    (segment,) = segments_of(await speak(SENTENCE, timestamps="word"))
    assert [word.text for word in segment.words] == [w.strip(",.") for w in SENTENCE.split()]
    start = 0.0
    for word in segment.words:
        assert word.start == pytest.approx(start, abs=0.02)
        assert word.end == pytest.approx(start + length_of(word.text), abs=0.02)
        start += length_of(word.text) + GAP_S


@pytest.mark.parametrize("granularity", ["segment", "word"])
async def test_segments_follow_their_audio_without_a_gap(granularity: Any) -> None:
    events = await speak(f"{SENTENCE} " * 4, timestamps=granularity)
    segments, spoken = segments_of(events), 0
    assert len(segments) > 1
    assert [segment.start for segment in segments[1:]] == [one.end for one in segments[:-1]]
    assert " ".join(segment.text for segment in segments) == " ".join([SENTENCE] * 4)
    for event in events:
        if isinstance(event, AudioDelta):
            spoken += event.pcm.size
        elif isinstance(event, TimedSegment):
            assert event.end == pytest.approx(spoken / RATE)
            assert bool(event.words) == (granularity == "word")
    assert segments[0].start == 0
    assert spoken == len(join_audio(events))


async def test_a_pause_of_the_text_is_between_segments() -> None:
    text = "One word. Another word."
    events = await speak(text, timestamps="word", pauses=(Pause(10, 2.0),))
    first, second = segments_of(events)
    assert second.start - first.end == pytest.approx(2.0)
    assert second.words[0].start >= second.start


@needs_rules
async def test_words_are_those_that_are_written() -> None:
    text, reading = "It cost \ue000 on the river.", ReadingOptions(lexicon={"\ue000": "a pound"})
    written = {"\ue000": "£1"}
    events = await speak(text, timestamps="word", reading=reading, written=written)
    segments = segments_of(events)
    assert [word.text for word in segments[0].words] == ["It", "cost", "£1", "on", "the", "river"]


async def test_silence_locates_words_at_its_start() -> None:
    async def say_nothing(request: TalkerRequest) -> AsyncGenerator[TalkerChunk, None]:
        yield TalkerChunk(np.zeros(RATE, np.float32), patches=1, last=True)

    talker = ScriptedEngine(say_nothing)
    (segment,) = segments_of(await speak(SENTENCE, talker, timestamps="word"))
    assert {(word.start, word.end) for word in segment.words} == {(0.0, 0.0)}


async def test_speakers_take_turns_as_one_audio() -> None:
    talker = ScriptedEngine(say_words)
    later = SpeechTurn("A friend of the miller.", Voice(VOICES[-1], 9))
    events = await speak("Who is there?", talker, later_turns=(later,), timestamps="word")
    assert [(one.voice, one.seed, one.segment) for one in talker.requests] == [
        (VOICES[0], 5, 0),
        (VOICES[-1], 9, 1),
    ]
    first, second = segments_of(events)
    assert [(one.voice, one.turn) for one in (first, second)] == [(VOICES[0], 0), (VOICES[-1], 1)]
    assert second.start - first.end == pytest.approx(TURN_PAUSE_S, abs=1e-3)
    assert second.end == pytest.approx(len(join_audio(events)) / RATE)
    words = [*first.words, *second.words]
    assert all(earlier.end <= later.start + 1e-6 for earlier, later in pairwise(words))


async def test_a_limit_applies_to_all_turns_together() -> None:
    talker = ScriptedEngine(say_words)
    turns = tuple(SpeechTurn("Two words.", VOICE) for _ in range(5))
    events = await speak("Two words.", talker, later_turns=turns, max_seconds=1e-3)
    assert isinstance(events[-1], Finished)
    assert (events[-1].reason, events[-1].usage.audio_tokens) == ("length", 1)
    assert len(talker.requests) == 1
    assert talker.open == 0
