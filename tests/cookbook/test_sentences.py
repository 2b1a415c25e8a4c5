"""Sentences are fresh, repeatable, apart, and already in the form the talker receives."""

import re
from collections.abc import Callable, Sequence
from dataclasses import replace
from itertools import islice
from pathlib import Path
from random import Random

import pytest

from cookbook.ming_mini import grammar
from cookbook.ming_mini.lexicon import EVERYDAY, FILES, WORDNET, Lexicon, read_lexicon
from cookbook.ming_mini.numbers import number_words
from cookbook.ming_mini.sentences import (
    MAX_WORDS,
    SPOKEN,
    commands,
    held_out,
    punctuate,
    sentences,
    split_of,
    take,
)
from cookbook.ming_mini.small_talk import FORMS, draw_talk
from sglang_omni.models.ming.text.front import split_fragments
from sglang_omni.models.ming.text.reference.english import number_to_words

LEXICON = Lexicon(
    nouns=("apple", "city", "glass", "river", "hour"),
    verbs=("carry", "find", "watch", "have"),
    adjectives=("old", "green", "easy"),
    adverbs=("soon", "often"),
    phrases=("a walk in the park", "he carried the old box home", "look at the river!"),
)
SPEAKING = replace(LEXICON, definitions=("a thing to sit on", "the water that falls from clouds"))


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
        assert " ".join(split_fragments(text)) == text
        assert 1 <= len(text.split()) <= MAX_WORDS


@pytest.mark.parametrize("top", [100, 1000, 10_000, 1_000_000])
def test_numbers_are_written_as_the_reference_writes_them(top: int) -> None:
    rng = Random(top)
    for number in [rng.randrange(top) for _ in range(100)]:
        assert number_words(number) == number_to_words(str(number))


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


@pytest.mark.parametrize("form", dict.fromkeys(FORMS))
def test_a_form_of_talk_is_words_commas_and_one_mark(
    form: Callable[[Random, Lexicon], str],
) -> None:
    rng = Random(1)
    for _ in range(200):
        text = punctuate(form(rng, LEXICON))
        assert re.fullmatch(r"[A-Z][a-z']*(,? [A-Za-z']+)*[.?]", text), text
        assert len(text.split()) <= MAX_WORDS


def test_talk_is_the_same_for_the_same_seed_and_seldom_twice() -> None:
    def drawn(seed: int) -> list[str]:
        rng = Random(seed)
        return [draw_talk(rng, LEXICON) for _ in range(500)]

    assert drawn(3) == drawn(3) != drawn(4)
    assert len(set(drawn(3))) > 450


def test_what_the_talker_learns_stays_apart_from_what_is_held_out() -> None:
    learned = set(islice(sentences(1, SPEAKING, "train", SPOKEN), 2000))
    kept = list(islice(sentences(1, SPEAKING, "held_out", SPOKEN), 200))
    assert not learned & set(kept)
    assert {split_of(text) for text in learned} == {"train"}
    assert {split_of(text) for text in kept} == {"held_out"}
    assert not learned & set(take(200, 1, LEXICON, "held_out"))


def wordnet(folder: Path, glosses: Sequence[str]) -> Path:
    """A folder in WordNet's layout: a word with a usage example often enough, and glosses."""
    example = "; ".join(f'"we sit on a thing number {letter}"' for letter in "abcdefg"[:EVERYDAY])
    for file in FILES:
        lines = glosses if file == FILES[0] else [f"a way to do it; {example}"]
        (folder / file).write_text("".join(f"00001740 03 n 01 x 0 000 | {g}  \n" for g in lines))
    (folder / "cntlist.rev").write_text("thing%1:03:00:: 1 9\nsit%2:35:00:: 1 5\n")
    return folder


def test_definitions_are_parts_of_glosses_in_everyday_words(tmp_path: Path) -> None:
    glosses = (
        "a thing (as of wood) we sit on; an upholstered settle",
        "sit on a thing",
        "sit on it",
        "a thing numbered 5 we sit on",
    )
    lexicon = read_lexicon(wordnet(tmp_path, glosses))
    assert lexicon.definitions == ("a thing we sit on", "sit on a thing")
    assert lexicon.nouns == ("thing",)
    assert lexicon.verbs == ("sit",)


@pytest.mark.skipif(not WORDNET.is_dir(), reason="needs WordNet")
def test_held_out_sentences_are_those_that_were_measured_before() -> None:
    assert held_out(3, 7, read_lexicon()) == [
        "Technical scar survival. Ground the electrical connections for safety reasons.",
        "Ten plus seventy-five is eighty-five.",
        "The purple word is on the left.",
    ]
