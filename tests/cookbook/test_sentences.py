"""Sentences are fresh, repeatable, apart, and already in the form the talker receives."""

from itertools import islice
from random import Random

import pytest

from cookbook.ming_mini import grammar
from cookbook.ming_mini.lexicon import Lexicon
from cookbook.ming_mini.numbers import number_words
from cookbook.ming_mini.sentences import LONGEST_WORDS, commands, sentences, split_of, take
from sglang_omni.models.ming.text.english import words
from sglang_omni.models.ming.text.front import fragments

LEXICON = Lexicon(
    nouns=("apple", "city", "glass", "river", "hour"),
    verbs=("carry", "find", "watch", "have"),
    adjectives=("old", "green", "easy"),
    adverbs=("soon", "often"),
    phrases=("a walk in the park", "he carried the old box home", "look at the river!"),
)


def test_the_same_seed_gives_the_same_sentences() -> None:
    assert take(50, 7, LEXICON) == take(50, 7, LEXICON)
    assert take(50, 7, LEXICON) != take(50, 8, LEXICON)


def test_training_and_held_out_sentences_are_disjoint() -> None:
    train, held_out = set(take(2000, 1, LEXICON)), set(take(200, 1, LEXICON, "held_out"))
    assert not train & held_out
    assert all(split_of(text) == "held_out" for text in held_out)


def test_case_and_punctuation_do_not_change_the_split() -> None:
    for text in take(100, 3, LEXICON, "held_out"):
        assert split_of(text.upper().replace(".", "!")) == "held_out"


def test_the_text_front_end_leaves_sentences_as_they_are() -> None:
    for text in islice(sentences(5, LEXICON), 300):
        assert " ".join(fragments(text)) == text
        assert 1 <= len(text.split()) <= LONGEST_WORDS


@pytest.mark.parametrize("top", [100, 1000, 10_000, 1_000_000])
def test_numbers_are_written_as_the_front_end_writes_them(top: int) -> None:
    rng = Random(top)
    for number in [rng.randrange(top) for _ in range(100)]:
        assert number_words(number) == words(str(number))


def test_a_number_out_of_range_is_refused() -> None:
    with pytest.raises(ValueError, match="1000000"):
        number_words(1_000_000)


def test_commands_are_different_and_of_one_split() -> None:
    found = commands(100, 1, "held_out")
    assert len(set(found)) == 100
    assert {split_of(text) for text in found} == {"held_out"}


def test_the_grammar_names_every_word_of_its_commands() -> None:
    known = set(grammar.jsgf().replace("(", " ").replace("[", " ").split())
    for text in commands(200, 2, "train"):
        assert set(text.split()) <= known
