"""Everyday sentences are plain, short, repeatable, and no more than there are."""

from importlib.util import find_spec

import pytest

from measurement import everyday_sentences
from measurement.everyday_sentences import FEWEST, MOST, everyday

pytestmark = pytest.mark.skipif(
    find_spec(everyday_sentences.PACKAGE) is None, reason="needs chatterbot-corpus"
)
MORE_THAN_ALL = 1_000_000


def test_a_sentence_is_said_in_one_way_only() -> None:
    for text in everyday(300, 1):
        assert FEWEST <= len(text.split()) <= MOST
        assert set(text) <= set("abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ' ,.!?")
        assert not any(word.isupper() and len(word) > 1 for word in text.split())


@pytest.mark.parametrize(
    "text", ["In 1999 it was new.", "Is it an IBM computer?", "Too short.", "what? - I can not say"]
)
def test_digits_abbreviations_and_other_signs_are_left_out(text: str) -> None:
    assert not everyday_sentences._fits(text)


def test_a_sentence_longer_than_the_bound_is_left_out() -> None:
    assert everyday_sentences._fits("word " * MOST) and not everyday_sentences._fits(
        "word " * (MOST + 1)
    )


def test_the_seed_decides_which_and_none_comes_twice() -> None:
    assert everyday(50, 7) == everyday(50, 7)
    assert set(everyday(50, 7)) != set(everyday(50, 8))
    assert len(set(everyday(300, 7))) == 300


def test_more_sentences_than_there_are_is_an_error() -> None:
    with pytest.raises(ValueError, match="there are"):
        everyday(MORE_THAN_ALL, 1)
