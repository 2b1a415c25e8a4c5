"""`<say-as>`: the writer names the class of a text."""

import pytest

from sglang_omni.normalization.say_as import KINDS, read_as


@pytest.mark.parametrize(
    ("kind", "text", "english", "chinese"),
    [
        ("characters", "ABC-12", "A B C dash one two", "A B C杠一二"),
        ("spell-out", "a1!", "A one exclamation mark", "A一感叹号"),
        ("verbatim", "x/y", "X slash Y", "X斜杠Y"),
        (
            "cardinal",
            "1,234.5",
            "one thousand two hundred thirty-four point five",
            "一千二百三十四点五",
        ),
        ("number", "-7", "minus seven", "负七"),
        ("ordinal", "21", "twenty-first", "第二十一"),
        ("ordinal", "2nd", "second", "第二"),
        ("digits", "405 12", "four zero five one two", "四零五一二"),
        ("telephone", "555-0142", "five five five, zero one four two", "五五五零幺四二"),
        (
            "telephone",
            "555-0142 ext. 5",
            "five five five, zero one four two, extension five",
            "五五五零幺四二转五",
        ),
        ("date", "2024-05-06", "May sixth, twenty twenty-four", "二零二四年五月六日"),
        ("time", "14:30", "fourteen thirty", "十四点三十分"),
        ("fraction", "3/4", "three quarters", "四分之三"),
        ("currency", "$5.20", "five dollars and twenty cents", "五点二美元"),
        ("unit", "5 km", "five kilometers", "五公里"),
    ],
)
def test_a_text_is_read_as_its_kind(kind: str, text: str, english: str, chinese: str) -> None:
    assert read_as(kind, text, "en") == english
    assert read_as(kind, text, "zh") == chinese


@pytest.mark.parametrize(
    ("order", "text", "english", "chinese"),
    [
        ("dmy", "05/06/2024", "June fifth, twenty twenty-four", "二零二四年六月五日"),
        ("mdy", "05/06/2024", "May sixth, twenty twenty-four", "二零二四年五月六日"),
        (
            "ymd",
            "2024.12.31",
            "December thirty-first, twenty twenty-four",
            "二零二四年十二月三十一日",
        ),
        ("dm", "5/6", "June fifth", "六月五日"),
        ("my", "05/2024", "May twenty twenty-four", "二零二四年五月"),
        ("y", "1984", "nineteen eighty-four", "一九八四年"),
    ],
)
def test_the_parts_of_a_date_may_be_in_any_order(
    order: str, text: str, english: str, chinese: str
) -> None:
    assert read_as("date", text, "en", order) == english
    assert read_as("date", text, "zh", order) == chinese


@pytest.mark.parametrize(
    ("kind", "text", "order"),
    [
        ("date", "yesterday", ""),
        ("date", "13/13/2024", "mdy"),
        ("date", "5/6", "mdy"),
        ("cardinal", "five", ""),
        ("cardinal", "1.2.3", ""),
        ("ordinal", "-3", ""),
        ("digits", "12a", ""),
        ("telephone", "call me", ""),
        ("time", "noon", ""),
        ("currency", "cheap", ""),
        ("characters", "\u2003", ""),
    ],
)
def test_a_text_of_another_kind_is_not_read(kind: str, text: str, order: str) -> None:
    assert read_as(kind, text, "en", order) is None
    assert read_as(kind, text, "zh", order) is None


@pytest.mark.parametrize("kind", KINDS)
def test_no_text_makes_a_reader_fail(kind: str) -> None:
    for text in (
        "0",
        "00/00/0000",
        "²",
        "٣",
        "½",
        "-",
        "+",
        "9" * 300,
        "1:61",
        "字",
        "é",
        "🙂",
        "a" * 300,
    ):
        for language in ("en", "zh"):
            read_as(kind, text, language)
