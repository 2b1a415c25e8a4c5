"""The benchmark of spoken answers asks over a realtime session and judges what is heard."""

from collections.abc import Iterator

import numpy as np
import pytest
from websockets.asyncio.client import connect

from cookbook.ming_mini.evaluation.quality import Question
from cookbook.ming_mini.evaluation.spoken_answers import (
    CLIP_RATE,
    RATE,
    Exchange,
    draw_alternatives,
    exchange,
    grammar,
    judge_exchange,
    relevant_words,
    spoken_answer,
    summarise,
)
from cookbook.ming_mini.thinker.items import Check, Item
from measurement.pocketsphinx_recogniser import Recogniser
from sglang_omni.pipeline.request import AudioDelta, Finished, TranscriptDelta, Usage
from tests.cookbook.thinker.conftest import LEXICON
from tests.entrypoints.http.fake import Served, playing, serving, tone
from tests.entrypoints.realtime import sounds

SUM = "12 + 30 = 42. The answer is 42."


@pytest.fixture
def server() -> Iterator[Served]:
    with serving() as served:
        yield served


async def test_a_clip_goes_in_and_the_answers_sound_comes_out(server: Served) -> None:
    server.backend.script = playing(
        TranscriptDelta("Yes."), AudioDelta(tone()), Finished("stop", Usage())
    )
    clip = (32767 * sounds.voice(0.6, CLIP_RATE)).astype(np.int16)
    async with connect(f"{server.url.replace('http', 'ws')}/v1/realtime", proxy=None) as session:
        transcript, samples = await exchange(session, clip)
    assert transcript == "Yes."
    assert len(samples) > RATE // 100
    assert 0.01 < np.abs(samples).max() <= 1


def test_what_counts_of_a_sum_is_its_result() -> None:
    assert spoken_answer(SUM) == ["forty", "two"]
    assert spoken_answer("No.") == ["no"]
    assert spoken_answer("") == []
    assert relevant_words(["forty", "eight", "the", "answer", "is", "forty", "two"]) == [
        "forty",
        "two",
    ]
    assert relevant_words(["no"]) == ["no"]
    assert relevant_words([]) == []


def judged(answer: str, transcript: str, heard: str) -> Exchange:
    check: Check = "number" if answer == SUM else "exact"
    item = Item("spoken_question", "", answer, check, speech="a question")
    return judge_exchange(Question("spoken_question, seen voice", item), transcript, heard.split())


def test_text_and_sound_are_judged_apart() -> None:
    verdicts = [
        (one.right, one.heard_as_transcript, one.heard_right)
        for one in (
            judged(SUM, SUM, "two thirty forty two the answer is forty two"),
            judged(SUM, SUM, "sunday"),
            judged("Yes.", "No.", "no"),
            judged("Yes.", "No.", "yes"),
            judged("Yes.", "", ""),
        )
    ]
    right, unheard, wrong, misheard, silent = verdicts
    assert right == (True, True, True)
    assert unheard == (True, False, False)
    assert wrong == (False, True, False)
    assert misheard == (False, False, True)
    assert silent == (False, False, False)


def test_the_summary_counts() -> None:
    done = [judged("Yes.", "Yes.", "yes"), judged("Yes.", "No.", "no")]
    counts = summarise(done)
    assert (counts["items"], counts["right"], counts["heard"], counts["heard_right"]) == (
        2,
        1,
        2,
        1,
    )


def test_a_recogniser_takes_the_grammar() -> None:
    knows = Recogniser().knows
    answers = draw_alternatives(1, LEXICON, knows, 20)
    assert len(answers) >= 20
    assert all(knows(word) for one in answers for word in one.split())
    assert Recogniser(grammar(answers)).words(np.zeros(8000, np.float32), 16_000) == []
