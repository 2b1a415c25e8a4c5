"""Letters and digits together in Chinese."""

import pytest

from sglang_omni.normalization.normalizer import build_normalizer

NORMALIZER = build_normalizer()

READ = [
    ("HDR10", "HDR十"),
    ("5G手机", "五G手机"),
    ("4K视频", "四K视频"),
    ("A380客机", "A三八零客机"),
    ("G1234次", "G一二三四次"),
    ("COVID-19", "COVID十九"),
    ("F-22", "F二十二"),
    ("歼-20", "歼二十"),
    ("B2B", "B to B"),
    ("O2O", "O to O"),
    ("MP3", "MP三"),
    ("H100", "H一百"),
    ("CA1234航班", "CA一二三四航班"),
    ("iPhone15", "iPhone十五"),
    ("RTX 4090", "RTX 四零九零"),
    ("波音747", "波音七四七"),
    ("i7-13700K", "i七一三七零零K"),
    ("T恤", "T恤"),
    ("1080P", "一零八零P"),
    ("PM2.5", "PM二点五"),
]
# What must not be read by this class.
OTHER = [
    ("5kg", "五公斤"),
    ("A$5", "五澳元"),
    ("UTF编码", "UTF编码"),
]


@pytest.mark.parametrize(("written", "spoken"), READ)
def test_reads(written: str, spoken: str) -> None:
    assert NORMALIZER.normalize(written, language="zh") == spoken


@pytest.mark.parametrize(("written", "spoken"), OTHER)
def test_leaves_to_other_classes(written: str, spoken: str) -> None:
    assert NORMALIZER.normalize(written, language="zh") == spoken
    names = {reading.name for reading in NORMALIZER.read(written, language="zh")}
    assert "serial" not in names
