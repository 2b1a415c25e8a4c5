"""Published pairs of written and spoken text, in the quality that the documentation promises."""

from pathlib import Path

import pytest

from benchmarks.evaluation.normalization import count_verdicts, read_and_judge
from measurement.spoken_forms.pairs import Pair, read_pairs
from measurement.spoken_forms.verdict import judge
from sglang_omni.normalization.normalizer import build_normalizer

DATA = Path(__file__).parent / "data"
NORMALIZER = build_normalizer()
# Percent: a little below what was measured, so that a new rule may cost a pair or two.
RIGHT = {
    ("en", "hand"): 96,
    ("en", "kokoro"): 96,
    ("en", "nemo"): 94,
    ("en", "wetext"): 94,
    ("zh", "hand"): 96,
    ("zh", "nemo"): 97,
    ("zh", "paddle"): 96,
    ("zh", "wetext"): 94,
    ("zh", "nemo_bare"): 95,
    ("zh", "paddle_bare"): 94,
    ("zh", "wetext_bare"): 94,
}


def pairs_of(language: str, source: str) -> list[Pair]:
    return [pair for pair in read_pairs(DATA, language) if pair.source == source]


@pytest.mark.parametrize(("language", "source"), RIGHT)
def test_pairs_are_read_right(language: str, source: str) -> None:
    verdicts = [read_and_judge(pair, NORMALIZER) for pair in pairs_of(language, source)]
    row = count_verdicts(source, verdicts)
    assert row["right"] >= RIGHT[language, source], row
    assert row["catastrophic"] <= 1, row


@pytest.mark.parametrize(
    ("written", "spoken", "verdict"),
    [
        ("at 5", "At, five.", "right"),
        ("at 5", "at fife", "number"),
        ("at 5", "at six", "odd"),
        ("look at 5", "five", "word"),
        ("at 5", "at 5", "symbol"),
        ("at 5", "...", "empty"),
    ],
)
def test_the_verdict_on_a_reading(written: str, spoken: str, verdict: str) -> None:
    accepted = [written.replace("5", "five")]
    assert judge(written, spoken, accepted, "en") == verdict


@pytest.mark.parametrize(
    ("language", "first", "second"),
    [
        ("en", "May twenty-fourth, twenty twenty-four", "the 24th".replace("24th", "twenty fourth")
         + " of may two thousand and twenty four"),
        ("en", "zero point five metres", "oh point five meters"),
        ("en", "twelve dollars and five cents", "Twelve dollars five cents"),
        ("en", "https colon slash slash a dot com", "a dot com"),
        ("zh", "两公里零五分", "二千米零五分"),
        ("zh", "三点零五分", "三点五分"),
    ],
)  # fmt: skip
def test_equal_readings(language: str, first: str, second: str) -> None:
    assert judge("x", first, [second], language) == "right"
