"""Ranges, scores and ratios in Chinese."""

import pytest

from sglang_omni.normalization.normalizer import build_normalizer

NORMALIZER = build_normalizer()

READ = [
    ("5-10个", "五到十个"),
    ("2-3个", "两到三个"),
    ("3~5天", "三到五天"),
    ("1-2", "一到二"),
    ("1000-2000字", "一千到两千字"),
    ("1.5-2.5倍", "一点五到二点五倍"),
    ("第1-3名", "第一到第三名"),
    ("5-7日", "五到七日"),
    ("3万-5万", "三万到五万"),
    ("10亿-20亿元", "十亿到二十亿元"),
    ("周一-周五", "周一到周五"),
    ("12\u201323", "十二到二十三"),
    ("5,000-10,000", "五千到一万"),
    ("9:00am-5:00pm", "上午九点到下午五点"),
]
# What must not be read by this class.
OTHER = [
    ("3-1=2", "三减一等于二"),
    ("歼-20", "歼二十"),
    ("比分3-2", "比分三比二"),
    ("中国队3:2获胜", "中国队三比二获胜"),
    ("以21:15获胜", "以二十一比十五获胜"),
    ("湖人110-98击败勇士", "湖人一百一十比九十八击败勇士"),
    ("16:9屏幕", "十六比九屏幕"),
    ("今天-5℃", "今天零下五摄氏度"),
    ("010-64035547", "零幺零六四零三五五四七"),
]


@pytest.mark.parametrize(("written", "spoken"), READ)
def test_reads(written: str, spoken: str) -> None:
    assert NORMALIZER.normalize(written, language="zh") == spoken


@pytest.mark.parametrize(("written", "spoken"), OTHER)
def test_leaves_to_other_classes(written: str, spoken: str) -> None:
    assert NORMALIZER.normalize(written, language="zh") == spoken
    names = {reading.name for reading in NORMALIZER.read(written, language="zh")}
    assert "range" not in names
