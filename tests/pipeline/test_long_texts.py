"""A long text is read piece by piece, by one voice, within its bound, and never all at once."""

from collections.abc import Iterator
from dataclasses import replace
from typing import Any, Self, cast

import numpy as np
import pytest

from sglang_omni.engines.runtime.process import Engine
from sglang_omni.engines.speech.contract import TalkerSettings
from sglang_omni.engines.speech.worker import TalkerWorker
from sglang_omni.models.speech_text import ReadingOptions, SpeechStyle, SpeechText, TextFrontEnd
from sglang_omni.pipeline.request import AudioDelta, Event, Finished, SpeechRequest, Voice
from sglang_omni.pipeline.segment_fader import MAX_LEAD_S
from sglang_omni.pipeline.speech import Speaker, speak
from tests.pipeline.engines import LocalTalker, ScriptedEngine, end_of, script_hum
from tests.testing.family import CHECKPOINT, FAMILY, FRAME_S, RATE, SPEECH_TEXT, VOICES

SENTENCE = "The river runs slowly past the old stone mill. "
VOICE = VOICES[0]


def reading(text: str, **more: Any) -> SpeechRequest:
    return SpeechRequest("book", text, Voice(VOICE, 5), **more)


async def heard(talker: Engine, request: SpeechRequest, **more: Any) -> list[Event]:
    speaker = Speaker(talker, SPEECH_TEXT, FRAME_S, VOICE, 5, RATE, **more)
    return [event async for event in speak(speaker, request)]


async def test_every_piece_has_the_same_voice_seed_and_manner_and_noise_of_its_own() -> None:
    talker, style = ScriptedEngine(script_hum()), SpeechStyle(instruction="{}", cfg=3.0)
    await heard(talker, reading(SENTENCE * 40), style=style)
    asked = talker.requests
    assert len(asked) > 5
    assert [one.segment for one in asked] == [*range(len(asked))]
    same = {(one.voice, one.seed, one.style, one.max_patches) for one in asked}
    assert same == {(VOICE, 5, style, None)}


class CountingFrontEnd:
    """Another front end that counts its fragments."""

    def __init__(self, front_end: TextFrontEnd) -> None:
        self.front_end, self.num_fragments = front_end, 0

    def open_front_end(self, options: ReadingOptions) -> Self:
        return self

    def split_fragments(self, text: str) -> Iterator[str]:
        for fragment in self.front_end.split_fragments(text):
            self.num_fragments += 1
            yield fragment


async def test_a_book_begins_as_soon_as_a_line() -> None:
    """The second piece is not put into words before the first is being spoken."""
    talker, counting = ScriptedEngine(script_hum()), CountingFrontEnd(SPEECH_TEXT.open_front_end())
    speaker = Speaker(talker, cast(SpeechText, counting), FRAME_S, VOICE, 5, RATE)
    events = speak(speaker, reading(SENTENCE * 2000))
    await anext(events)
    assert 0 < counting.num_fragments < 5
    await events.aclose()
    assert talker.open == 0


@pytest.mark.parametrize("seconds", [0.1, 1.0, 7.0])
async def test_no_more_is_spoken_than_was_asked_for(seconds: float) -> None:
    talker = ScriptedEngine(script_hum(patches=10))
    most = max(1, int(seconds / FRAME_S))
    events = await heard(talker, reading(SENTENCE * 9), max_patches=most)
    assert events[-1] == Finished("length", replace(end_of(events).usage, audio_tokens=most))
    assert talker.open == 0


async def test_a_description_is_one_piece_word_for_word() -> None:
    talker = ScriptedEngine(script_hum())
    text = " Genre: Folk. Mood: Calm. Instrument: Harp. Theme: 3 mills. Duration: 60s."
    await heard(talker, reading(text, verbatim=True, max_seconds=2.0))
    (asked,) = talker.requests
    assert (asked.text, asked.max_patches) == (text, int(2.0 / FRAME_S))
    await heard(talker, reading(text, verbatim=True))
    # The family's limit: the words say nothing about how long the music is.
    limit_s = SPEECH_TEXT.max_description_s(text)
    assert talker.requests[-1].max_patches == int(limit_s / FRAME_S)


async def test_a_real_voice_reads_on_without_a_click_or_a_gap() -> None:
    """A small talker's pieces end and begin in the middle of a hum."""
    settings = TalkerSettings(CHECKPOINT)
    model = FAMILY.load_speech_model(CHECKPOINT, settings.device, settings.dtype)
    async with LocalTalker(TalkerWorker(model, settings)) as talker:
        events = await heard(talker, reading("The mill turns, and turns again. " * 8))
        pcm = np.concatenate([event.pcm for event in events if isinstance(event, AudioDelta)])
    usage = end_of(events).usage
    assert usage.audio_tokens * FRAME_S > 3
    frame = RATE // 100
    frames = np.abs(pcm[: len(pcm) // frame * frame].reshape(-1, frame)).mean(axis=1)
    quiet = np.flatnonzero(np.diff(np.concatenate(([1], frames > 1e-3, [1]))))
    pauses = np.diff(quiet)[::2] * 0.01 if len(quiet) > 1 else np.zeros(1)
    assert pauses.max(initial=0) <= 0.3 + MAX_LEAD_S + 0.05
    # The hum itself steps; where pieces meet nothing steps further than inside of them.
    steps = np.abs(np.diff(pcm))
    ends = np.cumsum([len(event.pcm) for event in events if isinstance(event, AudioDelta)])[:-1]
    assert steps[ends - 1].max() <= np.quantile(steps, 0.9999)
