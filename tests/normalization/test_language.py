"""In which language a number is read."""

import pytest

from sglang_omni.models.ming.text.front import NormalizingFrontEnd, split_fragments
from sglang_omni.normalization.language import Language, detect_last_language
from sglang_omni.normalization.normalizer import build_normalizer

NORMALIZER = build_normalizer()


@pytest.mark.parametrize(
    ("text", "before", "spoken"),
    [
        ("839201。", "zh", "八十三万九千二百零一。"),
        ("12.", "zh", "十二."),
        ("12.", "en", "twelve."),
        ("12.", None, "twelve."),
        ("iPhone 15", "zh", "iPhone 十五"),
        ("iPhone 15", None, "iPhone fifteen"),
        ("Windows 11 Pro", "zh", "Windows 十一 Pro"),
        ("There are 12 apples.", "zh", "There are twelve apples."),
        ("安装Python 3.11。", None, "安装Python 三点一一。"),
        ("iPhone 15 Pro Max发布了。", None, "iPhone 十五 Pro Max发布了。"),
        ("他说：Yes, I have 3 cats.", None, "他说：Yes, I have three cats."),
        ("The word 你好 has 2 parts.", None, "The word 你好 has two parts."),
        ("1+1=2，对", None, "一加一等于二，对"),
        ("I bought 3. 我买了3本书。", None, "I bought three. 我买了三本书。"),
        ("12，13。", None, "十二，十三。"),
        ("12, 13。好的, fine 14", None, "十二, 十三。好的, fine 十四"),
    ],
)
def test_the_words_around_a_number_tell(text: str, before: Language | None, spoken: str) -> None:
    assert NORMALIZER.normalize(text, language=before) == spoken


@pytest.mark.parametrize(
    ("text", "language"),
    [("How much is 5?", "en"), ("多少钱？ 5", "zh"), ("12", None), ("看 iPhone", "zh")],
)
def test_the_last_language_of_a_text(text: str, language: str | None) -> None:
    assert detect_last_language(text) == language


def test_the_language_goes_on_from_text_to_text_of_one_request() -> None:
    front = NormalizingFrontEnd(NORMALIZER)
    texts = ["号码是", "12。", "13. ", "Now take these 14.", "15."]
    spoken = [list(front.split_fragments(text)) for text in texts]
    assert spoken == [
        ["号码是"],
        ["一二。"],
        ["十三."],
        ["Now take these fourteen."],
        ["fifteen."],
    ]


def test_requests_know_nothing_of_each_other() -> None:
    assert split_fragments("验证码是12") == ["验证码是一二"]
    assert split_fragments("12") == ["twelve"]
