"""Times of day and durations in Chinese."""

import pytest

from sglang_omni.normalization.normalizer import build_normalizer

NORMALIZER = build_normalizer()

READ = [
    ("12:05", "十二点零五分"),
    ("14:30", "十四点三十分"),
    ("8:00开始", "八点开始"),
    ("00:30", "零点三十分"),
    ("2:15", "两点十五分"),
    ("3:30pm", "下午三点三十分"),
    ("8am", "上午八点"),
    ("上午9:45", "上午九点四十五分"),
    ("11:05 p.m.见", "下午十一点零五分见"),
    ("9点05分", "九点零五分"),
    ("9点21分", "九点二十一分"),
    ("8时05分", "八时零五分"),
    ("10:20:30", "十点二十分三十秒"),
    ("用时1:02:36", "用时一小时零二分三十六秒"),
    ("3分05秒", "三分零五秒"),
    ("3h20min", "三小时二十分钟"),
    ("9:00-17:30", "九点到十七点三十分"),
    ("2点半", "两点半"),
    ("3点5分4秒pm", "下午三点五分四秒"),
    ("22：58", "二十二点五十八分"),
]
# What must not be read by this class.
OTHER = [
    ("比分21:15", "比分二十一比十五"),
    ("16:9", "十六比九"),
    ("37:16", "三十七比十六"),
    ("1:500", "一比五百"),
]


@pytest.mark.parametrize(("written", "spoken"), READ)
def test_reads(written: str, spoken: str) -> None:
    assert NORMALIZER.normalize(written, language="zh") == spoken


@pytest.mark.parametrize(("written", "spoken"), OTHER)
def test_leaves_to_other_classes(written: str, spoken: str) -> None:
    assert NORMALIZER.normalize(written, language="zh") == spoken
    names = {reading.name for reading in NORMALIZER.read(written, language="zh")}
    assert "time" not in names
