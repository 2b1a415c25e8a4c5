"""Answers that are right and answers that are not."""

import pytest

from cookbook.ming_mini.thinker.checks import is_right, word_errors
from cookbook.ming_mini.thinker.items import Check, Item
from measurement.edit_distance import edit_distance

CASES: tuple[tuple[Check, str, str, bool], ...] = (
    ("exact", "At the top left.", "at the top left", True),
    ("exact", "At the top left.", "at the top", False),
    ("exact", "At the top left.", "Hello.", True),
    ("exact", "At the top left.", "Hello, at the bottom.", False),
    ("exact", "T-A-B-L-E", "t-a-b-l-e.", True),
    ("exact", "T-A-B-L-E", "T-A-B-E-L", False),
    ("exact", "3, 4, 5.", "3, 4, 5", True),
    ("exact", "3, 4, 5.", "3, 5, 4", False),
    ("number", "The answer is 19.", "12 + 7 = 19. The answer is 19.", True),
    ("number", "The answer is 19.", "19 + 1 = 20.", False),
    ("number", "The answer is 19.", "nineteen", True),
    ("number", "The answer is 1200.", "It is 1,200.", True),
    ("number", "2.", "", False),
    ("number", "2.", "many", False),
    ("letter", "B", "B", True),
    ("letter", "B", "B. blue", True),
    ("letter", "B", "(B)", True),
    ("letter", "B", "C", False),
    ("letter", "B", "blue", False),
    ("contains", "Hello!", "Hello! How are you?", True),
    ("contains", "Hello!", "Goodbye.", False),
    ("words", "Open the green door.", "open the green door", True),
    ("words", "Open the green door.", "open the grey door", False),
)


@pytest.mark.parametrize(("check", "answer", "said", "right"), CASES)
def test_answers(check: Check, answer: str, said: str, right: bool) -> None:
    item = Item("repeat", "?", answer, check, accept=("hello",))
    assert is_right(item, said) == right


@pytest.mark.parametrize(
    ("expected", "said", "errors"),
    [
        ("a b c", "a b c", 0),
        ("a b c", "a c", 1),
        ("a b c", "a x c", 1),
        ("a b c", "a b c d", 1),
        ("a b c", "", 3),
        ("Twenty-one, please!", "twenty one please", 0),
    ],
)
def test_word_errors(expected: str, said: str, errors: int) -> None:
    assert word_errors(expected, said) == errors


def test_distance_is_the_same_both_ways() -> None:
    assert edit_distance("kitten", "sitting") == edit_distance("sitting", "kitten") == 3
