"""Roman numerals in English."""

import pytest

from sglang_omni.normalization.normalizer import build_normalizer

NORMALIZER = build_normalizer()
CLASSES = {"roman"}

READ = [
    ("Charles III's son", "Charles the third's son"),
    ("World Wars I and II", "World Wars one and two"),
    ("Louis XVI", "Louis the sixteenth"),
    ("Queen Elizabeth II", "Queen Elizabeth the second"),
    ("Chapter XII", "Chapter twelve"),
    ("World War I.", "World War one."),
    ("Act II", "Act two"),
    ("Volume III", "Volume three"),
    ("Part IV of it", "Part four of it"),
    ("Super Bowl XL", "Super Bowl forty"),
    ("Napoleon III", "Napoleon the third"),
    ("Type II", "Type two"),
    ("Pope Leo XIII", "Pope Leo the thirteenth"),
    ("Final Fantasy VII", "Final Fantasy seven"),
    ("Mark Lee III", "Mark Lee the third"),
]

NOT_READ = [
    "I think so",
    "Vitamin C",
    "a CD",
    "the MIX",
    "Part C",
    "the part I like",
    "Model X",
    "DIY",
]


@pytest.mark.parametrize(("written", "spoken"), READ)
def test_roman_are_read(written: str, spoken: str) -> None:
    assert NORMALIZER.normalize(written) == spoken


@pytest.mark.parametrize("written", NOT_READ)
def test_other_forms_are_not_roman(written: str) -> None:
    names = {reading.name for reading in NORMALIZER.read(written)}
    assert not names & CLASSES
