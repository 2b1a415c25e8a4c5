"""Fractions in Chinese."""

import pytest

from sglang_omni.normalization.normalizer import build_normalizer

NORMALIZER = build_normalizer()

READ = [
    ("1/2", "二分之一"),
    ("3/4", "四分之三"),
    ("33/100", "一百分之三十三"),
    ("1 / 3", "三分之一"),
    ("1又1/5", "一又五分之一"),
    ("-1/2", "负二分之一"),
    ("½", "二分之一"),
    ("1½杯", "一又二分之一杯"),
    ("⅔", "三分之二"),
    ("加1/2杯糖", "加二分之一杯糖"),
    ("1/3的人", "三分之一的人"),
    ("24/7服务", "每周七天每天二十四小时服务"),
    ("1/1.28英寸", "一点二八分之一英寸"),
    ("2分之1", "二分之一"),
]
# What must not be read by this class.
OTHER = [
    ("2024/3/5", "二零二四年三月五日"),
    ("08/08", "八月八日"),
    ("1/0", "一斜杠零"),
]


@pytest.mark.parametrize(("written", "spoken"), READ)
def test_reads(written: str, spoken: str) -> None:
    assert NORMALIZER.normalize(written, language="zh") == spoken


@pytest.mark.parametrize(("written", "spoken"), OTHER)
def test_leaves_to_other_classes(written: str, spoken: str) -> None:
    assert NORMALIZER.normalize(written, language="zh") == spoken
    names = {reading.name for reading in NORMALIZER.read(written, language="zh")}
    assert "fraction" not in names
