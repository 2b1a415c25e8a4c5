"""What a text consists of: tokens, semantic units, speakable characters."""

import re

HAN = "\u4e00-\u9fff"

_TOKEN = re.compile(
    r"(?:[A-Za-z]\.)+"  # U.S.A.
    r"|[A-Za-z]+(?:['-][A-Za-z]+)*"  # well-known
    r"|\d+(?:\.\d+)?"
    rf"|[{HAN}]|\s+|.",
    re.DOTALL,
)
_HAN = re.compile(rf"[{HAN}]")
# One semantic unit: a Chinese character (the block up to U+9FA5 counts) or a run of letters.
_UNIT = re.compile(r"[\u4e00-\u9fa5]|[A-Za-z]+")
_UNIT_OR_REST = re.compile(r"[\u4e00-\u9fa5]|[A-Za-z]+|[^\u4e00-\u9fa5A-Za-z]+")
_CONTENT = re.compile(r"[^\s!-/:-@\[-`{-~]")
_SPEAKABLE = re.compile(rf"[A-Za-z0-9{HAN}]")


def tokens(text: str) -> list[str]:
    """Words, dotted letters, numbers, Chinese characters, runs of blanks, single others."""
    return _TOKEN.findall(text)


def units(text: str) -> list[str]:
    """`text` as semantic units and the runs between them."""
    return _UNIT_OR_REST.findall(text)


def semantic_length(text: str) -> int:
    """Number of Chinese characters and runs of Latin letters."""
    return sum(1 for _ in _UNIT.finditer(text))


def contains_chinese(text: str) -> bool:
    """Whether any character is Chinese."""
    return _HAN.search(text) is not None


def has_content(text: str) -> bool:
    """Whether there is more than ASCII punctuation and white space."""
    return _CONTENT.search(text) is not None


def is_speakable(text: str) -> bool:
    """Whether there is anything the talker can pronounce: a letter, digit or character."""
    return _SPEAKABLE.search(text) is not None
