r"""Pieces of patterns that the Chinese rules share.

All Chinese patterns are compiled with `re.ASCII`: a digit is 0-9 and `\w` is a Latin letter, a
digit or `_`, so that a Han character bounds a form as a blank does. Repeats are possessive or
bounded, so that hostile input takes linear time.
"""

import re
from collections.abc import Iterable

from sglang_omni.normalization.rule import Match
from sglang_omni.normalization.tokens import HAN

HAN_CHARACTER = f"[{HAN}]"

# 1234, 1,234,567 and 12.50.
NUMBER = r"(?:\d{1,3}(?:,\d{3}){1,6}+(?!,?\d)|\d++)(?:\.\d++)?"
# A minus sign follows neither a letter, a digit nor a bracket: 今天-5 has one, 3-5 and A-5 do not.
MINUS = r"(?<![\w)\]}%°℃])[-\u2212]"
SIGNED = f"(?:{MINUS})?{NUMBER}"
SCALE = "(?:万亿|百万|千万|十万|[百千万亿兆])"
DASH = "[-\u2212\u2013—~～至到]"
"""What stands between the ends of a range."""
DASH_SIGN = "[-\u2212\u2013—~～]{1,2}"

MONTH = "(?:1[0-2]|0?[1-9])"
DAY = "(?:3[01]|[12][0-9]|0?[1-9])"

MAX_LOOK_BACK = 60


def form(pattern: str, flags: int = 0) -> re.Pattern[str]:
    """Compile a written form."""
    return re.compile(pattern, re.ASCII | flags)


def text_before(match: Match, length: int = MAX_LOOK_BACK) -> str:
    """Return the text in front of a match: the last `length` characters."""
    return match.string[max(0, match.start() - length) : match.start()]


def one_of(words: Iterable[str]) -> str:
    """Return a pattern for any of some words, the longest first."""
    longest_first = sorted(words, key=lambda word: (-len(word), word))
    return f"(?:{'|'.join(map(re.escape, longest_first))})"
