"""Everyday text that a front end is known to get wrong."""

import pytest

from sglang_omni.normalization.normalizer import build_normalizer

NORMALIZER = build_normalizer()


@pytest.mark.parametrize(
    ("written", "spoken"),
    [
        ("1984", "nineteen eighty-four"),
        ("She was born in 1984.", "She was born in nineteen eighty-four."),
        ("(555) 123-4567", "five five five, one two three, four five six seven"),
        ("john.smith@example.com", "john dot smith at example dot com"),
        ("See https://example.com/docs.", "See example dot com slash docs."),
        ("open 24/7", "open twenty-four seven"),
        ("the 90s", "the nineties"),
        ("£1", "one pound"),
        ("£2", "two pounds"),
        ("at 14:30", "at fourteen thirty"),
        ("Henry VIII", "Henry the eighth"),
        ("v1.2.3", "version one point two point three"),
        ("€5", "five euros"),
        ("25 m²", "twenty-five square meters"),
        ("HK$20", "twenty Hong Kong dollars"),
        ("A$13.5", "thirteen Australian dollars and fifty cents"),
        ("1,000", "one thousand"),
        ("the 1990s", "the nineteen nineties"),
        ("#1", "number one"),
        ("two  blanks", "two  blanks"),
        ("On July 4, 1776, at 9 a.m.", "On July fourth, seventeen seventy-six, at nine AM."),
    ],
)
def test_english(written: str, spoken: str) -> None:
    assert NORMALIZER.normalize(written) == spoken


@pytest.mark.parametrize(
    ("written", "spoken"),
    [
        ("请拨打400-800-1234", "请拨打四零零八零零幺二三四"),
        ("版本v1.2.3", "版本v一点二点三"),
        ("已知2+3=5", "已知二加三等于五"),
        ("共€5", "共五欧元"),
        ("25m²", "二十五平方米"),
        ("访问https://github.com/sgl-project查看", "访问github点com斜杠sgl杠project查看"),
        ("３０００余件", "三千余件"),
        ("价格HK$20", "价格二十港元"),
        ("价格是A$13.5", "价格是十三点五澳元"),
        ("大约3/4", "大约四分之三"),
        ("重12.5公斤", "重十二点五公斤"),
        ("时间14:30", "时间十四点三十分"),
        ("他生于1984年", "他生于一九八四年"),
    ],
)
def test_chinese(written: str, spoken: str) -> None:
    assert NORMALIZER.normalize(written, language="zh") == spoken


def test_a_chinese_answer_goes_on_in_chinese() -> None:
    """The second part has none of its characters."""
    assert NORMALIZER.normalize("验证码是839201。", 4, None) == "八三九二零一。"
    assert NORMALIZER.normalize("一共是839201。", 3, None).startswith("八十三万")
