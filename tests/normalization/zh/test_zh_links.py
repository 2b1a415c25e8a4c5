"""Links and addresses in Chinese."""

import pytest

from sglang_omni.normalization.normalizer import build_normalizer

NORMALIZER = build_normalizer()

READ = [
    ("john.smith@example.com", "john点smith艾特example点com"),
    ("www.python.org", "WWW点python点org"),
    (
        "访问https://github.com/sgl-project查看",
        "访问github点com斜杠sgl杠project查看",
    ),
    ("example.com/a_b", "example点com斜杠a下划线b"),
    ("localhost:8080/", "localhost冒号八零八零斜杠"),
    ("10.0.0.1:8080", "一零点零点零点一冒号八零八零"),
    ("请发到a1@qq.com。", "请发到a一艾特qq点com。"),
    ("打开report.pdf", "打开report点PDF"),
    ("参见[指南](https://example.com/a)。", "参见指南。"),
    ("http://a.cn/?x=1", "a点CN斜杠问号x等于一"),
    ("user_name@163.com", "user下划线name艾特一六三点com"),
    ("/usr/local/bin", "斜杠usr斜杠local斜杠bin"),
]
# What must not be read by this class.
OTHER = [
    ("他@了我", "他艾特了我"),
    ("A/B测试", "A斜杠B测试"),
]


@pytest.mark.parametrize(("written", "spoken"), READ)
def test_reads(written: str, spoken: str) -> None:
    assert NORMALIZER.normalize(written, language="zh") == spoken


@pytest.mark.parametrize(("written", "spoken"), OTHER)
def test_leaves_to_other_classes(written: str, spoken: str) -> None:
    assert NORMALIZER.normalize(written, language="zh") == spoken
    names = {reading.name for reading in NORMALIZER.read(written, language="zh")}
    assert "link" not in names
