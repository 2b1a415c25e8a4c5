"""What the reference's front end says, and what the server's own says instead."""

import pytest

from sglang_omni.models.ming.speech_text import MingSpeechText
from sglang_omni.models.ming.text.front import split_fragments
from sglang_omni.models.ming.text.reference.front import collect_reference_fragments
from sglang_omni.models.speech_text import ReadingOptions

REFERENCE = ReadingOptions(front_end="reference")


def read_as_reference(text: str) -> list[str]:
    return list(MingSpeechText().open_front_end(REFERENCE).split_fragments(text))


@pytest.mark.parametrize(
    ("text", "reference", "ours"),
    [
        ("the 1st test", "the one test", "the first test"),
        ("the 22nd", "the twenty-two", "the twenty-second"),
        ("at 10 a.m. now", "at ten amperes .m. now", "at ten AM now"),
        ("3 a day", "three amperes day", "three a day"),
        ("the 1990s", "the one thousand, nine hundred ninety seconds", "the nineteen nineties"),
        ("is -2.75", "is - two point seven five", "is minus two point seven five"),
        ("-40°C", "- forty degrees celsius", "minus forty degrees Celsius"),
        ("3-5 days", "three minus five days", "three to five days"),
        (
            "call 555-1234",
            "call five hundred fifty-five minus one thousand, two hundred thirty-four",
            "call five five five, one two three four",
        ),
        ("for HK$20 now", "for HK twenty dollars now", "for twenty Hong Kong dollars now"),
        ("HK$2 million", "HK two dollars million", "two million Hong Kong dollars"),
        ("比赛结果是3:2哦", "比赛结果是三点零二分哦", "比赛结果是三比二哦"),
        ("价格HK$20吧", "价格HK二十美元吧", "价格二十港元吧"),
        ("时间为12:05吧", "时间为十二点零五分吧", "时间为十二点零五分吧"),
    ],
)
def test_both_front_ends(text: str, reference: str, ours: str) -> None:
    assert read_as_reference(text) == [reference]
    assert split_fragments(text) == [ours]


def test_zero_alone_is_spoken() -> None:
    """The reference looks for the digits 1 to 9 only."""
    assert read_as_reference("0") == []
    assert split_fragments("0") == ["zero"]


def test_a_group_without_content_does_not_end_the_speech() -> None:
    """The reference crashes on the text after it (its buffer stays a string)."""
    assert split_fragments("............. hello there") == ["hello there"]


def test_an_abbreviation_does_not_end_a_sentence() -> None:
    text = "Yesterday Dr. Smith came at 10 a.m. to St. Mary's, e.g. with Mr. Jones."
    assert next(f.text for f in collect_reference_fragments(text)) == "Yesterday Dr."
    assert split_fragments(text) == [
        "Yesterday doctor Smith came at ten AM to Saint Mary's, for example with mister Jones."
    ]


def test_an_abbreviation_at_the_end_of_a_sentence_still_ends_it() -> None:
    assert split_fragments("He left at 5 p.m. She slept.")[0].startswith("He left at five PM.")
    assert split_fragments("He left at 5 p.m.") == ["He left at five PM."]
    text = "It is on Main St. The door is red."
    assert split_fragments(text) == ["It is on Main Street.", "The door is red."]


def test_a_link_is_read() -> None:
    """The reference ends a sentence inside it."""
    text = "Read all about it at https://example.com/a?b=1, it is very good."
    assert next(f.text for f in collect_reference_fragments(text)).endswith("https://example.")
    (spoken,) = split_fragments(text)
    assert "at example dot com slash a question mark b equals one, it is" in spoken


def test_lines_are_not_glued_together() -> None:
    """The reference says "linesecond"."""
    text = "First line\nsecond line\n\nA new paragraph"
    assert "linesecond" in next(iter(collect_reference_fragments(text))).text
    assert split_fragments(text) == ["First line, second line.", "A new paragraph"]


@pytest.mark.parametrize(
    ("text", "spoken"),
    [
        ("**Bold** and *soft* and `code`.", ["Bold and soft and code."]),
        ("# Title\n\n- one\n- two", ["Title. one. two"]),
        ("a [link](http://x.yz) here", ["a link here"]),
        ("rockets 🚀👨‍👩‍👧 fly", ["rockets fly"]),
        ("2 * 3 and 2*3", ["two times three and two times three"]),
        ("B2B and H2O", ["B two B and H two O"]),
        ("从$5涨到$6", ["从五美元涨到六美元"]),
    ],
)
def test_markup_and_signs(text: str, spoken: list[str]) -> None:
    assert split_fragments(text) == spoken


def test_reading_as_written() -> None:
    front_end = MingSpeechText().open_front_end(ReadingOptions(normalization="none"))
    assert list(front_end.split_fragments("Pay $5 by 9:30.")) == ["Pay $5 by 9:30."]


def test_a_lexicon_comes_before_the_rules() -> None:
    lexicon = {"SQL": "sequel", "nginx": "engine X", "1984": "the novel"}
    front_end = MingSpeechText().open_front_end(ReadingOptions(lexicon=lexicon))
    text = "Nginx and SQL in 1984, not MySQL in 1985."
    assert list(front_end.split_fragments(text)) == [
        "engine X and sequel in the novel, not MySQL in nineteen eighty-five."
    ]
