"""Texts for a talker that knows a few marks: others are replaced, and a last one is added."""

import string

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sglang_omni.models.ming.text.marks import write_in_marks

KNOWN = ".,?!-'"


@pytest.mark.parametrize(
    ("text", "written"),
    [
        ("Do you hate anyone", "Do you hate anyone."),
        ("Do you hate anyone?", "Do you hate anyone?"),
        ("I don't know, well-known as it is!", "I don't know, well-known as it is!"),
        ("I don’t know", "I don't know."),
        ('She said "hello" to us', "She said hello to us."),
        ('"Come in," he said.', "Come in, he said."),
        ("“Come in!” he said.", "Come in! he said."),
        ("My friend (the tall one) left.", "My friend, the tall one, left."),
        ("He left (at last).", "He left, at last."),
        ("the door; the window:", "the door, the window."),
        ("red - no, blue – or green — perhaps", "red, no, blue, or green, perhaps."),
        ("Wait... what?!", "Wait. what?"),
        ("Well…", "Well."),
        ("and then,", "and then."),
        ("this *and* _that_ #one", "this and that one."),
        ("...and so on", "and so on."),
    ],
)
def test_only_known_marks_are_left(text: str, written: str) -> None:
    assert write_in_marks(text, KNOWN) == written


def test_a_mark_that_is_known_stays() -> None:
    assert write_in_marks("one; two: three", ".,;") == "one; two, three."


@given(st.text(string.ascii_letters[:6] + string.punctuation + "’“”…—  ", max_size=40))
def test_words_stay_in_their_order_and_a_sentence_ends(text: str) -> None:
    written = write_in_marks(f"a {text} b", KNOWN)
    assert set(written) <= {*string.ascii_letters, *KNOWN, " "}
    assert written[-1] in ".?!"
    assert write_in_marks(written, KNOWN) == written
    letters = [one for one in f"a{text}b" if one.isalpha()]
    assert [one for one in written if one.isalpha()] == letters
