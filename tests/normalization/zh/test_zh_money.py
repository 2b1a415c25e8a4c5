"""Amounts of money in Chinese."""

import pytest

from sglang_omni.normalization.normalizer import build_normalizer

NORMALIZER = build_normalizer()

READ = [
    ("¥5", "五元"),
    ("￥13.50", "十三点五元"),
    ("$20", "二十美元"),
    ("US$1,234.56", "一千二百三十四点五六美元"),
    ("HK$20", "二十港元"),
    ("A$13.5", "十三点五澳元"),
    ("NT$300", "三百新台币"),
    ("€5", "五欧元"),
    ("£1", "一英镑"),
    ("₩100", "一百韩元"),
    ("CNY 1.25", "一点二五元"),
    ("100USD", "一百美元"),
    ("5€", "五欧元"),
    ("-$5", "负五美元"),
    ("$5M", "五百万美元"),
    ("$1.5B", "十五亿美元"),
    ("¥3.5万", "三点五万元"),
    ("$2亿", "两亿美元"),
    ("36.00元", "三十六元"),
    ("2块5", "两块五"),
    ("5块5毛", "五块五毛"),
    ("1000万美元", "一千万美元"),
    ("100-200元", "一百到两百元"),
    ("¥100-¥200", "一百到两百元"),
    ("¥99/月", "九十九元每月"),
    ("¥500元", "五百元"),
]
# What must not be read by this class.
OTHER = [
    ("500个", "五百个"),
    ("5k", "五k"),
    ("第5元素", "第五元素"),
]


@pytest.mark.parametrize(("written", "spoken"), READ)
def test_reads(written: str, spoken: str) -> None:
    assert NORMALIZER.normalize(written, language="zh") == spoken


@pytest.mark.parametrize(("written", "spoken"), OTHER)
def test_leaves_to_other_classes(written: str, spoken: str) -> None:
    assert NORMALIZER.normalize(written, language="zh") == spoken
    names = {reading.name for reading in NORMALIZER.read(written, language="zh")}
    assert "money" not in names
