"""Transcripts with digits and signs are read in every plausible way, and in no other."""

import pytest

from benchmarks.evaluation.readings.comparison import align, compare_words
from benchmarks.evaluation.readings.number_words import (
    cardinal_readings,
    decade_readings,
    fraction_readings,
    number_readings,
    ordinal_readings,
)
from benchmarks.evaluation.readings.transcript import plain_words, transcript_readings


def wrong(intended: str, transcript: str) -> int:
    return compare_words("", intended, transcript).wrong


@pytest.mark.parametrize(
    ("intended", "transcript"),
    [
        ("in nineteen eighty four", "in 1984."),
        ("in two thousand seven", "in 2007"),
        ("in twenty oh seven", "In 2007"),
        ("twenty nineteen", "2019"),
        ("one thousand nine hundred eighty four", "1,984"),
        ("sixteen hundred", "1,600"),
        ("fifty two thousand", "52,000"),
        ("three hundred sixty five", "365"),
        ("three hundred and sixty five", "365"),
        ("nine one one", "911"),
        ("two twenty one", "221"),
        ("four one five five five five two six seven one", "415-555-2671"),
        ("five five five zero one four two", "555-0142"),
        ("March third twenty twenty four", "March 3, 2024"),
        ("July twenty first", "July 21st"),
        ("the twenty first floor", "the 21st floor"),
        ("seven forty five", "7:45"),
        ("seven forty five", "7.45"),
        ("eight o'clock", "8:00"),
        ("three thirty P M", "3:30 p.m."),
        ("eight P M", "8 pm"),
        ("eight P M", "8PM"),
        ("twenty five dollars", "$25"),
        ("three dollars and fifty cents", "$3.50"),
        ("two point five million dollars", "$2.5 million"),
        ("twelve kilograms", "12 kg"),
        ("three hundred milliliters", "300ml"),
        ("sixty five miles per hour", "65 mph"),
        ("fifteen degrees Celsius", "15°C"),
        ("ten percent", "10%"),
        ("three point two percent", "3.2%"),
        ("three point one four", "3.14"),
        ("three point eleven", "3.11"),
        ("one point four point two", "1.4.2"),
        ("one and a half hours", "1.5 hours"),
        ("one and a half hours", "1 1/2 hours"),
        ("one and a half hours", "1½ hours"),
        ("three quarters", "3/4"),
        ("two thirds", "2/3"),
        ("a half", "1/2"),
        ("six to twelve", "6-12"),
        ("ten minus three equals seven", "10 - 3 = 7"),
        ("seven times eight", "7 x 8"),
        ("minus five", "-5"),
        ("anna dot smith at example dot com", "anna.smith@example.com"),
        ("maps dot org slash paris", "maps.org/paris"),
        ("W W W dot example dot com", "www.example.com"),
        ("B M W X five", "BMW X5"),
        ("G P T four", "GPT-4"),
        ("I O S seventeen", "iOS 17"),
        ("B twelve", "B12"),
        ("Elizabeth the second", "Elizabeth II"),
        ("World War two", "World War II"),
        ("the nineteen eighties", "the 1980s"),
        ("the seventies", "the \u201970s"),
        ("Doctor Brown", "Dr. Brown"),
        ("forty two Oak Avenue", "42 Oak Ave."),
        ("the email of twenty one", "The e-mail of twenty-one"),
    ],
)
def test_what_recognisers_write_stands_for_what_was_said(intended: str, transcript: str) -> None:
    assert wrong(intended, transcript) == 0


@pytest.mark.parametrize(
    ("intended", "transcript", "errors"),
    [
        ("in nineteen eighty four", "in 1985", 1),
        # With a comma it is a quantity, and not a year.
        ("nineteen eighty four", "1,984", 4),
        ("nine one one", "nine hundred eleven", 2),
        ("twenty five dollars", "25", 1),
        ("anna dot smith", "anna smith", 1),
        ("three dollars and fifty cents", "three point five zero dollars", 4),
        ("two thirds", "two third", 1),
        ("the nineties", "the ninety seconds", 2),
        ("sixteen", "60", 1),
        ("we were there", "WE WERE HERE", 1),
    ],
)
def test_other_words_are_wrong(intended: str, transcript: str, errors: int) -> None:
    assert wrong(intended, transcript) == errors


def test_key_words_are_those_that_are_not_written() -> None:
    heard = compare_words("Call 911 at one.", "Call nine one one at one.", "Call 901 at one.")
    assert heard.key_words == ("nine", "one", "one")
    assert heard.missed_key_words == ("one",)
    assert (heard.wrong, heard.words) == (1, 6)
    assert heard.heard[:2] == ("call", "nine")


def test_nothing_heard_is_all_wrong() -> None:
    heard = compare_words("In 1984.", "In nineteen eighty four.", "")
    assert (heard.wrong, heard.missed_key_words) == (4, ("nineteen", "eighty", "four"))


def test_the_best_choice_of_readings_is_taken() -> None:
    pieces = [frozenset({("a", "b"), ("c",)}), frozenset({("d",), ()})]
    assert align(("c", "d"), pieces).wrong == 0
    assert align(("a", "b"), pieces).heard == ("a", "b")
    assert align(("c", "x"), pieces).wrong == 1


def test_numbers_have_only_plausible_readings() -> None:
    assert number_readings("7") == {("seven",)}
    assert number_readings("05") == {("zero", "five")}
    assert ("sixteen", "hundred") in number_readings("1600")
    assert ("twenty", "hundred") not in number_readings("2000")
    assert cardinal_readings(105) == {
        ("one", "hundred", "five"),
        ("one", "hundred", "and", "five"),
        ("a", "hundred", "five"),
        ("a", "hundred", "and", "five"),
    }
    assert ("one", "million", "five") in cardinal_readings(1_000_005)
    assert number_readings("1" * 13) == {("one",) * 13}


def test_ordinals_decades_and_fractions() -> None:
    assert ordinal_readings("12") == {("twelfth",), ("one", "second")}
    assert ("nineteen", "eighties") in decade_readings("1980")
    assert ("two", "fifths") in fraction_readings("2", "5")
    assert {("one", "half"), ("half",), ("a", "half")} <= fraction_readings("1", "2")
    assert ("three", "halves") in fraction_readings("3", "2")


def test_words_are_plain() -> None:
    assert plain_words("It's 5 o'clock, Anna!") == ("it's", "o'clock", "anna")
    assert transcript_readings(" .") == [frozenset({()}), frozenset({()})]
