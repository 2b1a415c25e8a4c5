"""Signs and leftovers in Chinese."""

import pytest

from sglang_omni.normalization.normalizer import build_normalizer

NORMALIZER = build_normalizer()

READ = [
    ("男&女", "男和女"),
    ("AT&T", "AT and T"),
    ("C#", "C sharp"),
    ("他/她", "他或她"),
    ("好的~", "好的"),
    ("~5个", "约五个"),
    ("100+", "一百加"),
    ("#话题#", "井号话题井号"),
    ("@张三", "艾特张三"),
    ("50%", "百分之五十"),
    ("\uff05", "百分号"),
    ("第Ⅲ章", "第三章"),
    ("第IV章", "第四章"),
    ("①苹果", "一苹果"),
    ("No.5", "第五"),
    ("#5", "五号"),
    ("H₂O", "H二O"),
    ("北京→上海", "北京到上海"),
    ("\uff21\uff22", "AB"),
    ("a_b", "a下划线b"),
    ("^_^", ""),
]
# What must not be read by this class.
OTHER = [
    ("你好，世界！", "你好，世界！"),
    ("“引号”", "“引号”"),
]


@pytest.mark.parametrize(("written", "spoken"), READ)
def test_reads(written: str, spoken: str) -> None:
    assert NORMALIZER.normalize(written, language="zh") == spoken


@pytest.mark.parametrize(("written", "spoken"), OTHER)
def test_leaves_to_other_classes(written: str, spoken: str) -> None:
    assert NORMALIZER.normalize(written, language="zh") == spoken
    names = {reading.name for reading in NORMALIZER.read(written, language="zh")}
    assert "symbol" not in names
