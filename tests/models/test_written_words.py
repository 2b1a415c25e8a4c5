"""Fragments are traced back to the words that are written in the text."""

import pytest

from sglang_omni.models.written_words import WrittenText, get_letters
from sglang_omni.normalization.normalizer import build_normalizer
from sglang_omni.normalization.rule import Reading


def take(written: WrittenText, fragment: str) -> tuple[str, list[tuple[str, str]]] | None:
    """Return the written text of a fragment, and each word with the letters that speak it."""
    taken = written.take(fragment)
    if taken is None:
        return None
    letters = get_letters(fragment)
    return taken.text, [(word.text, letters[word.first : word.end]) for word in taken.words]


def read(text: str) -> WrittenText:
    written = WrittenText()
    written.add(text, tuple(build_normalizer().read(text)))
    return written


def test_words_are_those_of_the_text_without_the_marks_around_them() -> None:
    taken = take(read('She said: "well-known," — and left.'), "She said: well-known, and left.")
    assert taken is not None
    assert taken[0] == 'She said: "well-known," — and left.'
    assert taken[1] == [(w, get_letters(w)) for w in ("She", "said", "well-known", "and", "left")]


@pytest.mark.parametrize(
    ("text", "fragment", "words"),
    [
        ("It cost $5.", "It cost five dollars.", ["It", "cost", "$5"]),
        ("Lift 5 kg now.", "Lift five kilograms now.", ["Lift", "5 kg", "now"]),
        ("A B2B firm", "A B two B firm", ["A", "B2B", "firm"]),
        ("有100元。", "有一百元。", ["有", "100", "元"]),
        ("好。Hello 世界", "好。Hello 世界", ["好", "Hello", "世", "界"]),
    ],
    ids=["money", "measure", "mixed", "chinese", "both"],
)
def test_a_form_that_is_read_as_a_whole_is_one_word(
    text: str, fragment: str, words: list[str]
) -> None:
    taken = take(read(text), fragment)
    assert taken is not None
    assert taken[0] == text
    assert [word for word, _ in taken[1]] == words
    assert "".join(letters for _, letters in taken[1]) == get_letters(fragment)


def test_fragments_follow_each_other() -> None:
    written = read("One is $1. Two is $2.")
    assert take(written, "One is one dollar.") == (
        "One is $1.",
        [("One", "One"), ("is", "is"), ("$1", "onedollar")],
    )
    second = take(written, "Two is two dollars.")
    assert second is not None
    assert second[0] == "Two is $2."
    assert take(written, "Two is two dollars.") is None


def test_a_word_that_is_cut_is_told_where_it_starts() -> None:
    written = WrittenText()
    written.add("see 12 now", (Reading(4, 6, "one two", "number"),))
    assert take(written, "see one") == ("see 12", [("see", "see"), ("12", "one")])
    assert take(written, "two now") == ("now", [("now", "now")])


def test_words_that_are_not_spoken_are_passed_over() -> None:
    written = WrittenText()
    written.add("*** αβγ. Hello there. ")
    written.add("Good bye.")
    assert take(written, "Hello there.") == (
        "Hello there.",
        [("Hello", "Hello"), ("there", "there")],
    )
    assert take(written, "ay.") is None
    assert take(written, "Good bye.") is not None


def test_words_that_are_never_found_are_forgotten() -> None:
    written = WrittenText()
    for _ in range(100):
        written.add("some words " * 100)
        assert written.take("others") is None
    written.add("The end.")
    assert take(written, "The end.") == ("The end.", [("The", "The"), ("end", "end")])
    assert len(written._words) < 5000


def test_signs_stand_for_what_is_written() -> None:
    written = WrittenText({"\ue000": "W3C"})
    written.add("The \ue000 met.", (Reading(4, 5, "World Wide Web", "lexicon"),))
    taken = take(written, "The World Wide Web met.")
    assert taken is not None
    assert taken[0] == "The W3C met."
    assert taken[1][1] == ("W3C", "WorldWideWeb")


@pytest.mark.parametrize("fragment", ["", "...", "。"])
def test_a_fragment_without_letters_is_not_known(fragment: str) -> None:
    assert take(read("A text."), fragment) is None
