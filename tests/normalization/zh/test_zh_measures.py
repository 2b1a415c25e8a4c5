"""Measures in Chinese."""

import pytest

from sglang_omni.normalization.normalizer import build_normalizer

NORMALIZER = build_normalizer()

READ = [
    ("5m", "五米"),
    ("1.85m", "一点八五米"),
    ("2kg", "两公斤"),
    ("25 kg", "二十五公斤"),
    ("500ml", "五百毫升"),
    ("120km/h", "每小时一百二十公里"),
    ("时速120km/h", "时速一百二十公里"),
    ("5m/s", "每秒五米"),
    ("100Mbps", "每秒一百兆"),
    ("16GB", "十六GB"),
    ("120Hz", "一百二十赫兹"),
    ("2.4GHz", "二点四吉赫兹"),
    ("5000mAh", "五千毫安时"),
    ("38°C", "三十八摄氏度"),
    ("-5℃", "零下五摄氏度"),
    ("-3~5℃", "零下三到五摄氏度"),
    ("98.6°F", "九十八点六华氏度"),
    ("30°15\u203220″", "三十度十五分二十秒"),
    ("12.5%", "百分之十二点五"),
    ("-3%", "负百分之三"),
    ("+5%", "正百分之五"),
    ("100%", "百分之百"),
    ("5‰", "千分之五"),
    ("20%-30%", "百分之二十到百分之三十"),
    ("10-20%", "百分之十到二十"),
    ("120m²", "一百二十平方米"),
    ("5m3", "五立方米"),
    ("60㎡", "六十平方米"),
    ("m²", "平方米"),
    ("20元/人", "二十元每人"),
    ("100-200g", "一百到两百克"),
    ("1/2kg", "二分之一公斤"),
    ("500MB-2GB", "五百兆到两GB"),
    ("5'11\"", "五英尺十一英寸"),
]
# What must not be read by this class.
OTHER = [
    ("5G手机", "五G手机"),
    ("iPhone 5s", "iPhone 五s"),
    ("4S店", "四S店"),
    ("5A景区", "五A景区"),
]


@pytest.mark.parametrize(("written", "spoken"), READ)
def test_reads(written: str, spoken: str) -> None:
    assert NORMALIZER.normalize(written, language="zh") == spoken


@pytest.mark.parametrize(("written", "spoken"), OTHER)
def test_leaves_to_other_classes(written: str, spoken: str) -> None:
    assert NORMALIZER.normalize(written, language="zh") == spoken
    names = {reading.name for reading in NORMALIZER.read(written, language="zh")}
    assert "measure" not in names
