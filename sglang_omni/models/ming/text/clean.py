"""Remove what is written but not spoken: markup, links, emoji, stray blanks."""

import re

_DROPPED = (
    re.compile(r"\$(?!\d)[^$]*\$ ?"),  # formulas; two amounts are none
    re.compile(r"https?://[^\s\u4e00-\u9fff]+ ?|www\.[^\s\u4e00-\u9fff]+ ?"),
    re.compile(r"`[^`]*` ?"),
    re.compile(r"!\[[^\]\n]*\]\([^)\n]*\) ?"),  # images
)
_THOUSANDS = re.compile(r"(?<=\d),(?=\d{3})")
# Between characters that are both no letters: 好， 的 but not iPhone 15.
_BLANKS = re.compile(r"(?<=[^A-Za-z])\s+(?=[^A-Za-z])")
_MARKERS = re.compile(r"\*\*\*|\*\*|###|---")
_FACES = re.compile("[\U0001f600-\U0001f64f]")
_SHAPES = re.compile("[■□▲△▼▽◆◇○◎●★☆♠♡♢♣♤♥♦♧]")
_LINES = re.compile(r"[\t\n\r]")


def clean(text: str) -> str:
    """The reference's clean-up of one fragment before normalisation."""
    for pattern in _DROPPED:
        text = pattern.sub("", text)
    text = _BLANKS.sub("", _THOUSANDS.sub("", text))
    for pattern in (_MARKERS, _FACES, _SHAPES, _LINES):
        text = pattern.sub("", text)
    return text
