"""Everyday sentences are plain, short, repeatable, and no more than there are."""

from importlib.util import find_spec

import pytest

from measurement import everyday_sentences
from measurement.everyday_sentences import MAX_WORDS, MIN_WORDS, sample_sentences

pytestmark = pytest.mark.skipif(
    find_spec(everyday_sentences.PACKAGE) is None, reason="needs chatterbot-corpus"
)
MORE_THAN_ALL = 1_000_000


def test_a_sentence_is_said_in_one_way_only() -> None:
    for text in sample_sentences(300, 1):
        assert MIN_WORDS <= len(text.split()) <= MAX_WORDS
        assert set(text) <= set("abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ' ,.!?")
        assert not any(word.isupper() and len(word) > 1 for word in text.split())


@pytest.mark.parametrize(
    "text", ["In 1999 it was new.", "Is it an IBM computer?", "Too short.", "what? - I can not say"]
)
def test_digits_abbreviations_and_other_signs_are_left_out(text: str) -> None:
    assert not everyday_sentences._fits(text)


def test_a_sentence_longer_than_the_bound_is_left_out() -> None:
    assert everyday_sentences._fits("word " * MAX_WORDS)
    assert not everyday_sentences._fits("word " * (MAX_WORDS + 1))


def test_the_seed_decides_which_and_none_comes_twice() -> None:
    assert sample_sentences(50, 7) == sample_sentences(50, 7)
    assert set(sample_sentences(50, 7)) != set(sample_sentences(50, 8))
    assert len(set(sample_sentences(300, 7))) == 300


def test_more_sentences_than_there_are_is_an_error() -> None:
    with pytest.raises(ValueError, match="there are"):
        sample_sentences(MORE_THAN_ALL, 1)
