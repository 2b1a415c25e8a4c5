"""Serial numbers, models and codes in English."""

import pytest

from sglang_omni.normalization.normalizer import build_normalizer

NORMALIZER = build_normalizer()
CLASSES = {"code", "model", "serial"}

READ = [
    ("the A320", "the A three twenty"),
    ("an F-150", "an F-one fifty"),
    ("GTX 1660", "GTX sixteen sixty"),
    ("room 304", "room three oh four"),
    ("gate C7", "gate C seven"),
    ("code 7391", "code seven three nine one"),
    ("B2C", "B two C"),
    ("MP4", "MP four"),
    ("a Q4 plan", "a Q four plan"),
    ("Airbus 350", "Airbus three fifty"),
    ("PIN: 0042", "PIN: zero zero four two"),
    ("HTTP 503", "HTTP five oh three"),
    ("es6", "es six"),
    ("a 6-pack", "a six-pack"),
]

NOT_READ = [
    "word",
    "mother-in-law",
    "ABC",
    "room for 12",
]


@pytest.mark.parametrize(("written", "spoken"), READ)
def test_serials_are_read(written: str, spoken: str) -> None:
    assert NORMALIZER.normalize(written) == spoken


@pytest.mark.parametrize("written", NOT_READ)
def test_other_forms_are_not_serials(written: str) -> None:
    names = {reading.name for reading in NORMALIZER.read(written)}
    assert not names & CLASSES
