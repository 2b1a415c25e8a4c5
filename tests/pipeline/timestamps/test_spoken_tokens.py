"""The words of a fragment, and how long they usually take."""

import pytest

from sglang_omni.models.written_words import get_letters
from sglang_omni.pipeline.timestamps.spoken_tokens import estimate_seconds, split_tokens


@pytest.mark.parametrize(
    ("fragment", "tokens"),
    [
        ("Don't stop, well-known B.", ["Don't", "stop", "well", "known", "B"]),
        ("今天很好，OK?", ["今", "天", "很", "好", "OK"]),
        ("He said \u201cyes\u201d \u2014 twice", ["He", "said", "yes", "twice"]),
        ("...", []),
    ],
    ids=["english", "chinese", "quoted", "marks"],
)
def test_tokens_are_words_and_characters(fragment: str, tokens: list[str]) -> None:
    found = split_tokens(fragment)
    assert [token.text for token in found] == tokens
    letters = get_letters(fragment)
    assert [letters[token.first : token.end] for token in found] == [*map(get_letters, tokens)]


def test_marks_make_pauses() -> None:
    assert [token.has_pause for token in split_tokens("One, two three; four")] == [1, 0, 1, 1]


def test_longer_words_take_longer() -> None:
    words = ("a", "mill", "river", "remember", "extraordinary")
    seconds = [*map(estimate_seconds, words)]
    assert seconds == sorted(seconds)
    assert 0 < seconds[0] < seconds[-1] < 2
    assert estimate_seconds("made") < estimate_seconds("medal")
    assert estimate_seconds("2024") > estimate_seconds("20") > estimate_seconds("to")
    assert estimate_seconds("天") > 0
