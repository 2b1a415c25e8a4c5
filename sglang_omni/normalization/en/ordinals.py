"""Ordinal numbers: 1st, 22nd, 1,000th."""

import re

from sglang_omni.normalization.en.numbers import INTEGER, spell_ordinal
from sglang_omni.normalization.rule import FormStart, Match, Rule

_ORDINAL = re.compile(
    rf"(?<![\w.])(?P<number>{INTEGER})(?:(?P<suffix>(?i:st|nd|rd|th))s?|[ºª])(?!\w)"
)
_SUFFIXES = {"1": "st", "2": "nd", "3": "rd"}


def suffix_of(digits: str) -> str:
    """Return the letters that make an ordinal: "nd" for 22, but "th" for 12."""
    return "th" if digits[-2:-1] == "1" else _SUFFIXES.get(digits[-1], "th")


def _read_ordinal(match: Match) -> str | None:
    digits = match["number"].replace(",", "")
    if match["suffix"] and match["suffix"].lower() != suffix_of(digits):
        return None
    return spell_ordinal(digits) + ("s" if match[0].endswith("s") else "")


RULES = (Rule("ordinal", _ORDINAL, _read_ordinal, FormStart.DIGIT),)
