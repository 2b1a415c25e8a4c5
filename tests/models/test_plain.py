"""Parts that a family may use as they are."""

import pytest

from sglang_omni.models.plain import PlainSpeechText


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
