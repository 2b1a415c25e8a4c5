"""Remove what is not spoken: markup, links, emoji, stray blanks."""

import re

_REMOVED = (
    re.compile(r"\$(?!\d)[^$]*\$ ?"),  # Formulas, but not two amounts of money.
    re.compile(r"https?://[^\s\u4e00-\u9fff]+ ?|www\.[^\s\u4e00-\u9fff]+ ?"),
    re.compile(r"`[^`]*` ?"),
    re.compile(r"!\[[^\]\n]*\]\([^)\n]*\) ?"),  # Images.
)
_THOUSANDS = re.compile(r"(?<=\d),(?=\d{3})")
# Between two characters that are not letters: 好， 的, but not iPhone 15.
_BLANKS = re.compile(r"(?<=[^A-Za-z])\s+(?=[^A-Za-z])")
_MARKERS = re.compile(r"\*\*\*|\*\*|###|---")
_EMOJI = re.compile("[\U0001f600-\U0001f64f]")
_SHAPES = re.compile("[■□▲△▼▽◆◇○◎●★☆♠♡♢♣♤♥♦♧]")
_LINE_BREAKS = re.compile(r"[\t\n\r]")


def clean(text: str) -> str:
    """Clean up one fragment before normalisation, as the reference does."""
    for pattern in _REMOVED:
        text = pattern.sub("", text)
    text = _BLANKS.sub("", _THOUSANDS.sub("", text))
    for pattern in (_MARKERS, _EMOJI, _SHAPES, _LINE_BREAKS):
        text = pattern.sub("", text)
    return text
