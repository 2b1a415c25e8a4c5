"""Parts that a family may use as they are."""

import pytest

from sglang_omni.models.plain import PlainSpeechText
from sglang_omni.models.speech_text import ReadingOptions
from sglang_omni.models.written_words import WrittenText


@pytest.mark.parametrize(
    ("text", "fragments"),
    [
        ("Hello. How are you?  Fine!", ["Hello.", "How are you?", "Fine!"]),
        ("今天天气很好。我们走吧！好", ["今天天气很好。", "我们走吧！", "好"]),
        ("It is 3.14 m\nlong.\n\n", ["It is 3.14 m", "long."]),
        ("Well… yes. 7.", ["Well…", "yes.", "7."]),
        ("😀 ... \n?!", []),
        ("", []),
    ],
)
def test_a_text_is_read_by_sentences_that_have_something_to_speak(
    text: str, fragments: list[str]
) -> None:
    assert [*PlainSpeechText().open_front_end().split_fragments(text)] == fragments


def test_the_words_of_a_lexicon_are_replaced() -> None:
    front_end = PlainSpeechText().open_front_end(ReadingOptions(lexicon={"SQL": "sequel"}))
    assert [*front_end.split_fragments("Use SQL. MySQL is 2.")] == ["Use sequel.", "MySQL is 2."]


def test_a_preview_is_what_is_spoken() -> None:
    preview = PlainSpeechText().preview("Use SQL. 😀\nNow!", ReadingOptions(lexicon={"SQL": "x"}))
    assert (preview.text, preview.forms) == ("Use x. Now!", ())


def test_the_plain_front_end_tells_what_it_reads() -> None:
    written = WrittenText()
    front_end = PlainSpeechText().open_front_end(ReadingOptions(), written)
    taken = [written.take(fragment) for fragment in front_end.split_fragments("One, two. Three!")]
    assert [[word.text for word in one.words] for one in taken if one is not None] == [
        ["One", "two"],
        ["Three"],
    ]
