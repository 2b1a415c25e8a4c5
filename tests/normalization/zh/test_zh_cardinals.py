"""Quantities in Chinese."""

import pytest

from sglang_omni.normalization.normalizer import build_normalizer

NORMALIZER = build_normalizer()

READ = [
    ("0", "零"),
    ("10", "十"),
    ("12", "十二"),
    ("105", "一百零五"),
    ("110个", "一百一十个"),
    ("200", "两百"),
    ("2000", "两千"),
    ("1234", "一千二百三十四"),
    ("10005", "一万零五"),
    ("20000", "两万"),
    ("1,000,000", "一百万"),
    ("100000001", "一亿零一"),
    ("1,234,567,890,123", "一万二千三百四十五亿六千七百八十九万零一百二十三"),
    ("-7", "负七"),
    ("3.05", "三点零五"),
    (".5", "零点五"),
    ("我有2只猫", "我有两只猫"),
    ("第2个", "第二个"),
    ("2季度", "二季度"),
    ("10000000000000", "十万亿"),
    ("22个", "二十二个"),
    ("2两", "二两"),
    ("包含\uff13\uff10\uff10\uff10余件", "包含三千余件"),
    ("10几个人", "十几个人"),
    ("2.50", "二点五零"),
]
# What must not be read by this class.
OTHER = [
    ("007", "零零七"),
    ("1984", "一九八四"),
    ("110报警", "幺幺零报警"),
]


@pytest.mark.parametrize(("written", "spoken"), READ)
def test_reads(written: str, spoken: str) -> None:
    assert NORMALIZER.normalize(written, language="zh") == spoken


@pytest.mark.parametrize(("written", "spoken"), OTHER)
def test_leaves_to_other_classes(written: str, spoken: str) -> None:
    assert NORMALIZER.normalize(written, language="zh") == spoken
    names = {reading.name for reading in NORMALIZER.read(written, language="zh")}
    assert "cardinal" not in names
