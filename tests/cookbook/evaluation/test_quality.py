"""The benchmark asks fresh held-out items in the API's form and counts honestly."""

import base64
import io
import wave

import numpy as np
import pytest
from PIL import Image

from cookbook.ming_mini.evaluation.quality import (
    Answered,
    Question,
    all_rows,
    message,
    missed_gates,
    questions,
    report,
)
from cookbook.ming_mini.thinker.items import Item
from cookbook.ming_mini.thinker.scenes import SYSTEM_FONTS
from measurement.intervals import wilson_interval
from tests.cookbook.thinker.conftest import LEXICON, hum

if not SYSTEM_FONTS.is_dir():
    pytest.importorskip("matplotlib", reason="no fonts to draw with")

ROWS = ("spell", "picture_count", "transcribe, unseen voice", "spoken_question, seen voice")


def asked(seed: int) -> list[Question]:
    return list(questions(seed, 3, LEXICON, ROWS, hum))


def test_questions_follow_from_the_seed_and_are_held_out() -> None:
    first, again, other = asked(1), asked(1), asked(2)
    assert [one.item for one in first] == [one.item for one in again]
    assert [one.item for one in first] != [one.item for one in other]
    assert {one.item.split for one in first} == {"held_out"}
    assert [one.row for one in first].count("spell") == 3
    assert {one.row for one in first} == set(ROWS)


def test_every_task_but_the_fixed_ones_is_a_row() -> None:
    assert "transcribe, seen voice" in all_rows()
    assert "fact" not in all_rows()


def test_media_travel_as_they_are() -> None:
    for question in asked(3):
        parts = {part["type"]: part for part in message(question)["content"]}
        if question.item.scene:
            data = parts["image_url"]["image_url"]["url"].split(",")[1]
            pixels = np.asarray(Image.open(io.BytesIO(base64.b64decode(data))))
            assert np.array_equal(pixels, question.item.scene.draw())
        if question.clip is not None:
            sound = base64.b64decode(parts["input_audio"]["input_audio"]["data"])
            with wave.open(io.BytesIO(sound)) as file:
                heard = np.frombuffer(file.readframes(file.getnframes()), np.int16)
            assert np.array_equal(heard, question.clip)


@pytest.mark.parametrize(
    ("right", "count", "low", "high"),
    [(0, 10, 0.0, 0.2775), (10, 10, 0.7225, 1.0), (50, 100, 0.4038, 0.5962)],
)
def test_wilsons_intervals(right: int, count: int, low: float, high: float) -> None:
    assert wilson_interval(right, count) == pytest.approx((low, high), abs=1e-4)


def test_the_report_counts_right_answers_and_words() -> None:
    item = Item("transcribe", "", "open the green door", "words", speech="open the green door")
    said = ("open the green door", "open the door", "")
    rows = report([Answered(Question("transcribe, seen voice", item), text, 0.1) for text in said])
    row = rows["transcribe, seen voice"]
    assert row["accuracy"] == pytest.approx(1 / 3)
    assert row["word_error"] == pytest.approx(5 / 12)
    assert row["word_error_interval"][0] <= row["word_error"] <= row["word_error_interval"][1]


def test_a_gate_is_unmet_by_less_and_by_what_was_not_measured() -> None:
    rows = {"spell": {"accuracy": 0.8}, "count": {"accuracy": 0.7}, "speak, slt": {"excess": 0.1}}
    assert missed_gates(rows, {"spell": 0.8, "count": 0.7}) == []
    missed = missed_gates(rows, {"spell": 0.85, "count": 0.7, "arithmetic": 0.5, "speak, slt": 0.1})
    assert missed == [
        "spell: 80.0%, minimum 85.0%",
        "arithmetic: 0.0%, minimum 50.0%",
        "speak, slt: 0.0%, minimum 10.0%",
    ]
