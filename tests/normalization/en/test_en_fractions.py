"""Fractions in English, and pairs of numbers that are none."""

import pytest

from sglang_omni.normalization.normalizer import build_normalizer

NORMALIZER = build_normalizer()

READ = [
    ("1/2", "one half"),
    ("2/3 of it", "two thirds of it"),
    ("3/4 of it", "three quarters of it"),
    ("1/4 of it", "one quarter of it"),
    ("5/8 of it", "five eighths of it"),
    ("7/16 of it", "seven sixteenths of it"),
    ("3 1/2", "three and a half"),
    ("2 3/4 cups", "two and three quarters cups"),
    ("1-1/2 cups", "one and a half cups"),
    ("½", "one half"),
    ("1½ hours", "one and a half hours"),
    ("2 ⅔ cups", "two and two thirds cups"),
    ("a blood pressure of 120/80", "a blood pressure of one hundred twenty over eighty"),
    ("22/7", "twenty-two sevenths"),
    ("3/2", "three halves"),
    ("10/10", "ten out of ten"),
    ("5/1", "five over one"),
    ("99/100", "ninety-nine one hundredths"),
    ("1/1000", "one one thousandth"),
    ("2/5ths of it", "two fifths of it"),
    ("Open 24/7.", "Open twenty-four seven."),
    ("A 50/50 chance.", "A fifty fifty chance."),
    ("The 9/11 attacks.", "The nine eleven attacks."),
    ("She got 9.5/10.", "She got nine point five out of ten."),
    ("I rate it 8/10.", "I rate it eight out of ten."),
    ("4/4", "four quarters"),
    ("M½", "M one half"),
    ("the ⅓", "the one third"),
    ("0.5/10", "zero point five out of ten"),
    ("a½b", "a one half b"),
]

NOT_READ = [
    "1/2/2020",
    "and/or",
    "km/h",
    "31/31/100",
    "a/b",
]


@pytest.mark.parametrize(("written", "spoken"), READ)
def test_it_is_read(written: str, spoken: str) -> None:
    assert NORMALIZER.normalize(written) == spoken


@pytest.mark.parametrize("written", NOT_READ)
def test_something_else_is_left_to_other_rules(written: str) -> None:
    names = {reading.name for reading in NORMALIZER.read(written)}
    assert not names & {"fraction", "pair", "score"}
