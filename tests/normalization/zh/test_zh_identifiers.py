"""Numbers that name a thing in Chinese."""

import pytest

from sglang_omni.normalization.normalizer import build_normalizer

NORMALIZER = build_normalizer()

READ = [
    ("验证码是839201", "验证码是八三九二零一"),
    ("密码：1234", "密码：一二三四"),
    ("尾号1702", "尾号一七零二"),
    ("QQ号123456789", "QQ号一二三四五六七八九"),
    ("邮编100080", "邮编一零零零八零"),
    ("身份证号11010519491231002X", "身份证号一一零一零五一九四九一二三一零零二X"),
    ("302室", "三零二室"),
    ("房间1205", "房间一二零五"),
    ("302路公交", "三零二路公交"),
    ("985高校", "九八五高校"),
    ("996工作制", "九九六工作制"),
    ("930新政", "九三零新政"),
    ("京A12345", "京A一二三四五"),
    ("6222 0212 3456 7890", "六二二二零二一二三四五六七八九零"),
    ("138****1234", "一三八星星星星一二三四"),
    ("ISBN 978-7-111-12345-6", "ISBN 九七八七一一一一二三四五六"),
]
# What must not be read by this class.
OTHER = [
    ("订单2个", "订单两个"),
    ("10路车", "十路车"),
    ("8楼", "八楼"),
]


@pytest.mark.parametrize(("written", "spoken"), READ)
def test_reads(written: str, spoken: str) -> None:
    assert NORMALIZER.normalize(written, language="zh") == spoken


@pytest.mark.parametrize(("written", "spoken"), OTHER)
def test_leaves_to_other_classes(written: str, spoken: str) -> None:
    assert NORMALIZER.normalize(written, language="zh") == spoken
    names = {reading.name for reading in NORMALIZER.read(written, language="zh")}
    assert "identifier" not in names
