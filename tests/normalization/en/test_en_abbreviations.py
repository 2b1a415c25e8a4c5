"""Abbreviations in English."""

import pytest

from sglang_omni.normalization.normalizer import build_normalizer

NORMALIZER = build_normalizer()
CLASSES = {"abbreviation", "initials", "title"}

READ = [
    ("Ali vs. Bo", "Ali versus Bo"),
    ("J.K. Lee", "JK Lee"),
    ("the U.S. We won", "the US. We won"),
    ("No. I won", "No. I won"),
    ("Mr. Hill", "mister Hill"),
    ("Mrs. Gray", "missus Gray"),
    ("Dr Hope", "doctor Hope"),
    ("Prof. Tan", "professor Tan"),
    ("e.g. tea", "for example tea"),
    ("i.e. now", "that is now"),
    ("tea, milk, etc.", "tea, milk, et cetera."),
    ("cats vs. dogs", "cats versus dogs"),
    ("No. 9", "number nine"),
    ("Acme Inc.", "Acme incorporated."),
    ("Fig. 4", "figure four"),
    ("pp. 3", "pages three"),
    ("U.K. law", "UK law"),
    ("the U.N.", "the UN."),
    ("St. Paul", "Saint Paul"),
    ("Mt. Etna", "Mount Etna"),
    ("a Ph.D.", "a PhD."),
]

NOT_READ = [
    "no. It is",
    "drum",
    "use it",
    "inch",
]


@pytest.mark.parametrize(("written", "spoken"), READ)
def test_abbreviations_are_read(written: str, spoken: str) -> None:
    assert NORMALIZER.normalize(written) == spoken


@pytest.mark.parametrize("written", NOT_READ)
def test_other_forms_are_not_abbreviations(written: str) -> None:
    names = {reading.name for reading in NORMALIZER.read(written)}
    assert not names & CLASSES
