"""Ordinal numbers in English."""

import pytest

from sglang_omni.normalization.normalizer import build_normalizer

NORMALIZER = build_normalizer()

READ = [
    ("the 1st", "the first"),
    ("the 2nd time", "the second time"),
    ("the 3rd floor", "the third floor"),
    ("the 4th.", "the fourth."),
    ("the 11th, 12th and 13th", "the eleventh, twelfth and thirteenth"),
    ("the 21st century", "the twenty-first century"),
    ("the 22nd", "the twenty-second"),
    ("the 30th", "the thirtieth"),
    ("the 40th", "the fortieth"),
    ("the 100th", "the one hundredth"),
    ("the 101st", "the one hundred first"),
    ("the 1,000th", "the one thousandth"),
    ("the 112th", "the one hundred twelfth"),
    ("the 5TH", "the fifth"),
    ("the 19th-century house", "the nineteenth-century house"),
    ("the 5th\u20136th grade", "the fifth to sixth grade"),
    ("two 10ths", "two tenths"),
]

NOT_READ = [
    "12nd",
    "the 4rd",
    "st",
    "1stop",
    "2",
]


@pytest.mark.parametrize(("written", "spoken"), READ)
def test_it_is_read(written: str, spoken: str) -> None:
    assert NORMALIZER.normalize(written) == spoken


@pytest.mark.parametrize("written", NOT_READ)
def test_something_else_is_left_to_other_rules(written: str) -> None:
    names = {reading.name for reading in NORMALIZER.read(written)}
    assert not names & {"ordinal"}
