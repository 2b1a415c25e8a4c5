"""Reduce Chinese readings to one form: 两 and 二, 公里 and 千米, 零五分 and 五分 alike."""

import re
import unicodedata

NUMERALS = "零一二三四五六七八九十百千万亿"
_SAME = (
    ("两", "二"), ("幺", "一"), ("〇", "零"), ("摄氏度", "度"), ("人民币", "元"), ("块钱", "元"),
    ("公里", "千米"), ("公斤", "千克"), ("公分", "厘米"), ("零下", "负"), ("艾特", "at"),
    ("dot", "点"), ("slash", "斜杠"),
)  # fmt: skip
_DASH = re.compile(r"(?<=[零一二两三四五六七八九十])\s*[-~～—]\s*(?=[零一二两三四五六七八九十百])")
_SIGNS = re.compile(r"[^\w]|_")
_PHRASES = (
    (re.compile(rf"([{NUMERALS}])号"), r"\1日"),
    (re.compile(r"(?<![一二三四五六七八九])一十"), "十"),
    (re.compile(rf"([{NUMERALS}]+)分之负"), r"负\1分之"),
    (re.compile(rf"(?<=[{NUMERALS}])至(?=[{NUMERALS}负百])"), "到"),
    (re.compile(r"点零([一二三四五六七八九]分)"), r"点\1"),
    (re.compile(rf"(点[{NUMERALS}]+)分(?![之钟])"), r"\1"),
    (re.compile(r"分零([一二三四五六七八九]秒)"), r"分\1"),
)


def reduce_chinese(text: str) -> str:
    """Return the form in which equal readings are equal."""
    text = _SIGNS.sub("", _DASH.sub("", unicodedata.normalize("NFKC", text).lower()))
    for written, same in _SAME:
        text = text.replace(written, same)
    for pattern, replacement in _PHRASES:
        text = pattern.sub(replacement, text)
    return text
