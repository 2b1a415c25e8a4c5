"""Ranges, scores, ratios and dimensions in English."""

import pytest

from sglang_omni.normalization.normalizer import build_normalizer

NORMALIZER = build_normalizer()

READ = [
    ("Read pages 10-20.", "Read pages ten to twenty."),
    ("Read pages 10\u201320.", "Read pages ten to twenty."),
    ("Ages 5 - 12.", "Ages five to twelve."),
    ("Ages 5~12.", "Ages five to twelve."),
    ("They lost 4-1.", "They lost four to one."),
    ("From 1990-1995.", "From nineteen ninety to nineteen ninety-five."),
    ("From 1990\u201395.", "From nineteen ninety to ninety-five."),
    ("The 1960s-80s.", "The nineteen sixties to eighties."),
    ("The '60s\u2013'70s.", "The sixties to seventies."),
    ("It is 5%-10%.", "It is five percent to ten percent."),
    ("It is $5 million-$10 million.", "It is five million dollars to ten million dollars."),
    ("June-August", "June to August"),
    ("June 2012 - August 2013", "June twenty twelve to August twenty thirteen"),
    ("a 16:9 screen", "a sixteen to nine screen"),
    ("a ratio of 3:1", "a ratio of three to one"),
    ("a 1920x1080 screen", "a nineteen twenty by ten eighty screen"),
    ("a 2x4", "a two by four"),
    ("a 10x10 grid", "a ten by ten grid"),
    ("5 cm x 10 cm", "five centimeters by ten centimeters"),
    ("A 3-5 day trip.", "A three to five day trip."),
    ("The 1st-3rd rows.", "The first to third rows."),
    ("From -10\u2013-5 °C.", "From minus ten to minus five degrees Celsius."),
    ("Q1-Q2", "Q one to Q two"),
    ("a 5-10-year plan", "a five to ten-year plan"),
    ("12 Jan-15 Feb", "the twelfth of January to the fifteenth of February"),
    ("3 kg\u20135 kg", "three kilograms to five kilograms"),
    ("Psalm 23:4 says so.", "Psalm twenty-three four says so."),
    ("He lost 21-19.", "He lost twenty-one to nineteen."),
    ("Wait 5-10 min.", "Wait five to ten minutes."),
    ("$3-4k", "three to four thousand dollars"),
    ("in 2023-24", "in twenty twenty-three to twenty-four"),
    ("on 8.5x11 paper", "on eight point five by eleven paper"),
    ("a 10x10x5 box", "a ten by ten by five box"),
    ("5kg-6kg", "five kilograms to six kilograms"),
]

NOT_READ = [
    "covid-19",
    "mother-in-law",
    "1-2-3",
    "a 3-year-old",
    "-5",
    "5-star",
]


@pytest.mark.parametrize(("written", "spoken"), READ)
def test_it_is_read(written: str, spoken: str) -> None:
    assert NORMALIZER.normalize(written) == spoken


@pytest.mark.parametrize("written", NOT_READ)
def test_something_else_is_left_to_other_rules(written: str) -> None:
    names = {reading.name for reading in NORMALIZER.read(written)}
    assert not names & {"range", "ratio", "dimensions"}
