"""The pipeline reads a long text with Ming's front end, and a description with Ming's limit."""

from typing import Any

import pytest

from sglang_omni.models.ming.speech_text import MingSpeechText
from sglang_omni.models.ming.text import front
from sglang_omni.pipeline.request import SpeechRequest, Voice
from sglang_omni.pipeline.speech import Speaker, speak
from tests.pipeline.engines import ScriptedEngine, script_hum

SENTENCE = "The river runs slowly past the old stone mill. "
RATE, FRAME_S = 44_100, 0.32


def speaker(talker: ScriptedEngine) -> Speaker:
    return Speaker(talker, MingSpeechText(), FRAME_S, "DB30", 5, RATE)


async def test_a_book_begins_as_soon_as_a_line(monkeypatch: pytest.MonkeyPatch) -> None:
    """The second piece is not put into words before the first is being spoken."""
    cut: list[str] = []
    real = front.normalize

    def counted(text: str, **how: Any) -> Any:
        cut.append(text)
        return real(text, **how)

    monkeypatch.setattr(front, "normalize", counted)
    talker = ScriptedEngine(script_hum())
    events = speak(speaker(talker), SpeechRequest("book", SENTENCE * 2000, Voice("DB30", 5)))
    await anext(events)
    assert len(cut) < 5
    await events.aclose()
    assert talker.open == 0


async def test_the_limit_of_a_description_is_the_references() -> None:
    """The words say nothing about how long the music is."""
    talker = ScriptedEngine(script_hum())
    text = " Genre: Folk. Mood: Calm. Instrument: Harp. Theme: 3 mills. Duration: 60s."
    request = SpeechRequest("music", text, Voice("DB30", 5), verbatim=True)
    assert [event async for event in speak(speaker(talker), request)]
    (asked,) = talker.requests
    assert (asked.text, asked.max_patches) == (text, int(len(text) * 5818 / 16000 / FRAME_S))
