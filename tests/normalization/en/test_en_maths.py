"""Mathematics in English."""

import pytest

from sglang_omni.normalization.normalizer import build_normalizer

NORMALIZER = build_normalizer()
CLASSES = {"formula", "maths"}

READ = [
    ("3 + 4 = 7", "three plus four equals seven"),
    ("9 - 5 = 4", "nine minus five equals four"),
    ("6 \u00d7 7", "six times seven"),
    ("8 ÷ 2", "eight divided by two"),
    ("a^2 + b^2", "a squared plus b squared"),
    ("z³", "z cubed"),
    ("10^6", "ten to the power of six"),
    ("√9", "the square root of nine"),
    ("x ≤ 3", "x less than or equal to three"),
    ("y ≥ 4", "y greater than or equal to four"),
    ("π", "pi"),
    ("2 * 5", "two times five"),
    ("a != b", "a not equal to b"),
    ("$\\frac{1}{2}$", "one half"),
    ("$x_i$", "x sub i"),
    ("\\(n+1\\)", "n plus one"),
    ("|z| = 2", "the absolute value of z equals two"),
    ("$\\sum_{i=1}^n i$", "the sum from i equals one to n of i"),
]

NOT_READ = [
    "$5 and $6",
    "mother-in-law",
    "and/or",
    "*note*",
]


@pytest.mark.parametrize(("written", "spoken"), READ)
def test_maths_are_read(written: str, spoken: str) -> None:
    assert NORMALIZER.normalize(written) == spoken


@pytest.mark.parametrize("written", NOT_READ)
def test_other_forms_are_not_maths(written: str) -> None:
    names = {reading.name for reading in NORMALIZER.read(written)}
    assert not names & CLASSES
