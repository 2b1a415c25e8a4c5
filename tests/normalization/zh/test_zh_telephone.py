"""Telephone numbers in Chinese."""

import pytest

from sglang_omni.normalization.normalizer import build_normalizer

NORMALIZER = build_normalizer()

READ = [
    ("13800138000", "幺三八零零幺三八零零零"),
    ("138 0013 8000", "幺三八零零幺三八零零零"),
    ("138-0013-8000", "幺三八零零幺三八零零零"),
    ("+86 138-0013-8000", "八六幺三八零零幺三八零零零"),
    ("010-64035547", "零幺零六四零三五五四七"),
    ("(021)68888888", "零二幺六八八八八八八八"),
    ("010-64035547转8001", "零幺零六四零三五五四七转八零零幺"),
    ("400-800-1234", "四零零八零零幺二三四"),
    ("4008001234", "四零零八零零幺二三四"),
    ("+1 415-555-2671", "幺四幺五五五五二六七幺"),
    ("+44 20 7946 0958", "四四二零七九四六零九五八"),
    ("请打120或110", "请打幺二零或幺幺零"),
    ("12306", "幺二三零六"),
    ("10086客服", "幺零零八六客服"),
    ("给12315打个电话", "给幺二三幺五打个电话"),
    ("95588", "九五五八八"),
]
# What must not be read by this class.
OTHER = [
    ("120个人", "一百二十个人"),
    ("110米栏", "一百一十米栏"),
    ("12000", "一万二千"),
]


@pytest.mark.parametrize(("written", "spoken"), READ)
def test_reads(written: str, spoken: str) -> None:
    assert NORMALIZER.normalize(written, language="zh") == spoken


@pytest.mark.parametrize(("written", "spoken"), OTHER)
def test_leaves_to_other_classes(written: str, spoken: str) -> None:
    assert NORMALIZER.normalize(written, language="zh") == spoken
    names = {reading.name for reading in NORMALIZER.read(written, language="zh")}
    assert "telephone" not in names
