"""The pipeline reads a long text with Ming's front end, and a description with Ming's limit."""

import time
from typing import Any

import pytest

from sglang_omni.models.ming.speech_text import MingSpeechText
from sglang_omni.models.ming.text.front import NormalizingFrontEnd, split_fragments
from sglang_omni.normalization.normalizer import Normalizer, build_normalizer
from sglang_omni.pipeline.request import SpeechRequest, Voice
from sglang_omni.pipeline.speech import Speaker, speak
from tests.pipeline.engines import ScriptedEngine, script_hum

SENTENCE = "The river runs slowly past the old stone mill. "
RATE, FRAME_S = 44_100, 0.32


def speaker(talker: ScriptedEngine) -> Speaker:
    return Speaker(talker, MingSpeechText(), FRAME_S, "DB30", 5, RATE)


async def test_a_book_begins_as_soon_as_a_line(monkeypatch: pytest.MonkeyPatch) -> None:
    """The second block is not put into words before the first is being spoken."""
    read: list[str] = []
    normalize = Normalizer.normalize

    def count(self: Normalizer, text: str, *how: Any) -> str:
        read.append(text)
        return normalize(self, text, *how)

    monkeypatch.setattr(Normalizer, "normalize", count)
    talker = ScriptedEngine(script_hum())
    events = speak(speaker(talker), SpeechRequest("book", SENTENCE * 2000, Voice("DB30", 5)))
    await anext(events)
    assert sum(map(len, read)) < 2000
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


@pytest.mark.parametrize(
    "line", ["A line of verse\n", "It cost $5 on 4 July.\n\n", "第3行有5个字。\n"]
)
def test_a_book_is_read_as_its_lines_are(line: str) -> None:
    """It is normalised in blocks, whose ends are not heard."""
    words = " ".join(split_fragments(line * 400))
    once = " ".join(split_fragments(line)).strip(" .")
    assert words.count(once) == 400


def test_a_long_text_takes_linear_time() -> None:
    began = time.process_time()
    for _ in NormalizingFrontEnd(build_normalizer()).split_fragments("word " * 400_000):
        break
    assert time.process_time() - began < 0.5
