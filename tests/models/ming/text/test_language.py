"""Which language a text is read in."""

import pytest

from sglang_omni.models.ming.text.front import MingTextFrontEnd
from sglang_omni.models.ming.text.language import detect_first_language, detect_language


@pytest.mark.parametrize(
    ("text", "alone", "after_chinese"),
    [
        ("839201。", None, "zh"),
        ("A380", None, "zh"),
        ("HK$20", None, "zh"),
        ("25°C, 5 kg, 120km/h", None, "zh"),
        ("iPhone 15", "en", "zh"),
        ("Windows 11 Pro", "en", "zh"),
        ("There are 12 apples.", "en", "en"),
        ("第5 of them is here", "zh", "zh"),
        ("", None, "zh"),
    ],
)
def test_language_of_a_fragment(text: str, alone: str | None, after_chinese: str) -> None:
    assert detect_language(text, None) == alone
    assert detect_language(text, "zh") == after_chinese
    assert detect_language(text, "en") == (alone or "en")


def test_the_first_word_tells() -> None:
    assert detect_first_language("12, 13。好的, fine") == "zh"
    assert detect_first_language("12, 13. Fine，好的") == "en"
    assert detect_first_language("5 kg！5 km。") is None


def test_the_language_goes_on_from_text_to_text_of_one_request() -> None:
    front = MingTextFrontEnd()
    spoken = [
        *map(
            list,
            map(front.split_fragments, ["验证码是", "12。", "13", "Now take these 14.", "15."]),
        )
    ]
    assert spoken == [
        ["验证码是"],
        ["十二。"],
        ["十三"],
        ["Now take these fourteen ."],
        ["fifteen ."],
    ]


def test_requests_know_nothing_of_each_other() -> None:
    assert list(MingTextFrontEnd().split_fragments("验证码是12")) == ["验证码是十二"]
    assert list(MingTextFrontEnd().split_fragments("12")) == ["twelve"]
