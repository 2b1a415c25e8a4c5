"""Arithmetic in Chinese."""

import pytest

from sglang_omni.normalization.normalizer import build_normalizer

NORMALIZER = build_normalizer()

READ = [
    ("2+3=5", "二加三等于五"),
    ("5\u00d73=15", "五乘三等于十五"),
    ("10-3=7", "十减三等于七"),
    ("6/2=3", "六除以二等于三"),
    ("8÷2", "八除以二"),
    ("1+2+3", "一加二加三"),
    ("2 = 1 + 1", "二等于一加一"),
    ("2>=1", "二大于等于一"),
    ("≥100万", "大于等于一百万"),
    ("3<5", "三小于五"),
    ("x²+y²", "x的平方加y的平方"),
    ("10^8", "十的八次方"),
    ("10⁻³", "十的负三次方"),
    ("√2", "根号二"),
    ("π≈3.14", "派约等于三点一四"),
    ("±5%", "正负百分之五"),
    ("1920x1080", "一千九百二十乘一千零八十"),
    ("7*24小时", "七乘二十四小时"),
    ("6.02\u00d710^23", "六点零二乘十的二十三次方"),
    ("面积是$\\pi r^2$。", "面积是派 r的平方。"),
    ("$\\frac{1}{2}$", "二分之一"),
]
# What must not be read by this class.
OTHER = [
    ("C++", "C加加"),
    ("5-10个", "五到十个"),
]


@pytest.mark.parametrize(("written", "spoken"), READ)
def test_reads(written: str, spoken: str) -> None:
    assert NORMALIZER.normalize(written, language="zh") == spoken


@pytest.mark.parametrize(("written", "spoken"), OTHER)
def test_leaves_to_other_classes(written: str, spoken: str) -> None:
    assert NORMALIZER.normalize(written, language="zh") == spoken
    names = {reading.name for reading in NORMALIZER.read(written, language="zh")}
    assert "maths" not in names
