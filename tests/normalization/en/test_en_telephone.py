"""Telephone and other numbers in groups in English."""

import pytest

from sglang_omni.normalization.normalizer import build_normalizer

NORMALIZER = build_normalizer()
CLASSES = {"telephone"}

READ = [
    ("400-800-1234", "four zero zero, eight zero zero, one two three four"),
    ("(800) 555-0199", "eight hundred, five five five, zero one nine nine"),
    ("(212) 555-0187", "two one two, five five five, zero one eight seven"),
    ("+49 30 901820", "plus four nine, three zero, nine zero one eight two zero"),
    ("1-888-555-0123", "one, eight eight eight, five five five, zero one two three"),
    ("call 999", "call nine nine nine"),
    ("dial 311", "dial three one one"),
    ("030 1234 5678", "zero three zero, one two three four, five six seven eight"),
    ("555-0199", "five five five, zero one nine nine"),
    ("212.555.0187", "two one two, five five five, zero one eight seven"),
    (
        "+1 212 555 0187 ext. 12",
        "plus one, two one two, five five five, zero one eight seven, extension one two",
    ),
    (
        "5500 0000 0000 0004",
        "five five zero zero, zero zero zero zero, zero zero zero zero, zero zero zero four",
    ),
    ("987-65-4321", "nine eight seven, six five, four three two one"),
    ("1-800-PLUMBER", "one, eight hundred, PLUMBER"),
    ("text 40404", "text four zero four zero four"),
]

NOT_READ = [
    "1999-2003",
    "call 300 people",
    "2024-01-05",
    "pages 100-1200",
]


@pytest.mark.parametrize(("written", "spoken"), READ)
def test_telephone_are_read(written: str, spoken: str) -> None:
    assert NORMALIZER.normalize(written) == spoken


@pytest.mark.parametrize("written", NOT_READ)
def test_other_forms_are_not_telephone(written: str) -> None:
    names = {reading.name for reading in NORMALIZER.read(written)}
    assert not names & CLASSES
