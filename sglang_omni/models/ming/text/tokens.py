"""Split a text into tokens and units, and test its characters."""

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
# A unit is a Chinese character (up to U+9FA5) or a run of letters.
_UNIT = re.compile(r"[\u4e00-\u9fa5]|[A-Za-z]+")
_UNIT_OR_REST = re.compile(r"[\u4e00-\u9fa5]|[A-Za-z]+|[^\u4e00-\u9fa5A-Za-z]+")
_CONTENT = re.compile(r"[^\s!-/:-@\[-`{-~]")
_SPEAKABLE = re.compile(rf"[A-Za-z0-9{HAN}]")


def split_tokens(text: str) -> list[str]:
    """Return words, dotted letters, numbers, Chinese characters, runs of blanks, and the rest."""
    return _TOKEN.findall(text)


def split_units(text: str) -> list[str]:
    """Return the units of `text` and the runs between them."""
    return _UNIT_OR_REST.findall(text)


def count_units(text: str) -> int:
    """Return the number of Chinese characters and runs of Latin letters."""
    return sum(1 for _ in _UNIT.finditer(text))


def contains_chinese(text: str) -> bool:
    """Whether any character is Chinese."""
    return _HAN.search(text) is not None


def has_content(text: str) -> bool:
    """Whether there is anything besides ASCII punctuation and white space."""
    return _CONTENT.search(text) is not None


def is_speakable(text: str) -> bool:
    """Whether the talker can pronounce anything: a letter, digit or Chinese character."""
    return _SPEAKABLE.search(text) is not None
