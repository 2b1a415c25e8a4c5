"""Letters that are no word."""

import string

import pytest

from sglang_omni.models.ming.text.front import split_fragments
from sglang_omni.models.ming.text.letters import complete_short_text, shorten_repeats


@pytest.mark.parametrize(
    ("text", "left"),
    [
        ("A" * 300, "A" * 16),
        ("aA" * 150, "aA" * 8),
        ("so lo" + "o" * 99 + "ng", "so lo" + "o" * 15 + "ng"),
        ("ha" * 200, "ha" * 8),
        ("qwrtpsdfg" * 40, "qwrtpsdfg"),
        ("啊" * 300 + "！", "啊" * 16 + "！"),
    ],
)
def test_runs_that_repeat_themselves_are_shortened(text: str, left: str) -> None:
    assert shorten_repeats(text) == left


@pytest.mark.parametrize(
    "text",
    [
        "Aaaaaaargh! Nooooooo!",
        "hahahahahaha",
        "Pneumonoultramicroscopicsilicovolcanoconiosis",
        "ha " * 200,
        "零" * 30,
        "7" * 300,
        "今天天气很好" * 30,
        "The mill. " * 30,
    ],
)
def test_what_says_something_is_left_alone(text: str) -> None:
    assert shorten_repeats(text) == text


@pytest.mark.parametrize("letter", string.ascii_letters)
def test_a_lone_letter_is_said_by_its_name(letter: str) -> None:
    (name,) = split_fragments(letter)
    assert name.endswith(".")
    assert len(name) > 2
    assert split_fragments(f"({letter})") == split_fragments(f"{letter}.") == [name]


def test_short_texts_are_sentences() -> None:
    assert complete_short_text("hi") == "hi."
    assert complete_short_text("hi!") == "hi!"
    assert complete_short_text("yes") == "yes"


def test_a_letter_in_a_chinese_answer_stays_one() -> None:
    assert split_fragments("这道题应该选择哪一个答案比较好呢？A。")[-1] == "A。"
