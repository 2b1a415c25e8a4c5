"""Dates and years in Chinese."""

import pytest

from sglang_omni.normalization.normalizer import build_normalizer

NORMALIZER = build_normalizer()

READ = [
    ("2024-03-15", "二零二四年三月十五日"),
    ("2024/3/5", "二零二四年三月五日"),
    ("2024.12.31", "二零二四年十二月三十一日"),
    ("15/03/2024", "二零二四年三月十五日"),
    ("2008/08", "二零零八年八月"),
    ("2008-08", "二零零八年八月"),
    ("08/08", "八月八日"),
    ("3/15上午开会", "三月十五日上午开会"),
    ("2024年3月5日", "二零二四年三月五日"),
    ("02月", "二月"),
    ("05年毕业", "零五年毕业"),
    ("98年出生", "九八年出生"),
    ("1984", "一九八四"),
    ("毕业于1999", "毕业于一九九九"),
    ("2022世界杯", "二零二二世界杯"),
    ("90年代", "九十年代"),
    ("00年代", "零零年代"),
    ("80后", "八零后"),
    ("1990年代", "一九九零年代"),
    ("20世纪70年代", "二十世纪七十年代"),
    ("公元前221年", "公元前二二一年"),
    ("公元618年", "公元六一八年"),
    ("476ad", "公元四七六年"),
    ("9·11事件", "九一一事件"),
    ("农历8月15", "农历八月十五"),
    ("2018-2022年", "二零一八到二零二二年"),
    ("2023-24赛季", "二零二三到二四赛季"),
    ("3月5日-8日", "三月五日到八日"),
    ("1975年bc", "公元前一九七五年"),
    ("2024-03-15T08:30:00", "二零二四年三月十五日八点三十分零秒"),
]
# What must not be read by this class.
OTHER = [
    ("他工作了20年", "他工作了二十年"),
    ("3000年历史", "三千年历史"),
    ("1999元", "一千九百九十九元"),
    ("3/4", "四分之三"),
    ("13/45", "四十五分之十三"),
]


@pytest.mark.parametrize(("written", "spoken"), READ)
def test_reads(written: str, spoken: str) -> None:
    assert NORMALIZER.normalize(written, language="zh") == spoken


@pytest.mark.parametrize(("written", "spoken"), OTHER)
def test_leaves_to_other_classes(written: str, spoken: str) -> None:
    assert NORMALIZER.normalize(written, language="zh") == spoken
    names = {reading.name for reading in NORMALIZER.read(written, language="zh")}
    assert "date" not in names
