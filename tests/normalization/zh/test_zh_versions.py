"""Versions and addresses of networks in Chinese."""

import pytest

from sglang_omni.normalization.normalizer import build_normalizer

NORMALIZER = build_normalizer()

READ = [
    ("v1.2.3", "v一点二点三"),
    ("iOS 17.5.1", "iOS 十七点五点一"),
    ("1.0.0", "一点零点零"),
    ("2.10.3", "二点十点三"),
    ("v3.2.1-beta", "v三点二点一beta"),
    ("PyTorch 2.1.0", "PyTorch 二点一点零"),
    ("5.15.0.500", "五点十五点零点五百"),
    ("安装1.26.4版", "安装一点二十六点四版"),
    ("1.2.3.4.5", "一点二点三点四点五"),
    ("V10.0.1", "V十点零点一"),
    ("固件2.0.05", "固件二点零点零五"),
    ("升级到4.18.2", "升级到四点十八点二"),
]
# What must not be read by this class.
OTHER = [
    ("Python 3.11", "Python 三点一一"),
    ("v2.0", "v二点零"),
    ("2024.3.15", "二零二四年三月十五日"),
    ("路由器是192.168.1.1", "路由器是一九二点一六八点一点一"),
]


@pytest.mark.parametrize(("written", "spoken"), READ)
def test_reads(written: str, spoken: str) -> None:
    assert NORMALIZER.normalize(written, language="zh") == spoken


@pytest.mark.parametrize(("written", "spoken"), OTHER)
def test_leaves_to_other_classes(written: str, spoken: str) -> None:
    assert NORMALIZER.normalize(written, language="zh") == spoken
    names = {reading.name for reading in NORMALIZER.read(written, language="zh")}
    assert "version" not in names
