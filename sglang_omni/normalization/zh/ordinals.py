"""Ordinals: No.5, №3, 1st, 第Ⅲ章, ①."""

from sglang_omni.normalization.rule import FormStart, Match, Rule, replace_with
from sglang_omni.normalization.zh.numbers import spell_cardinal
from sglang_omni.normalization.zh.patterns import form

_NUMERO = form(r"(?<![A-Za-z])(?:[Nn][Oo]\.|№|NO)\s?(?P<number>\d{1,9})(?![\d.]?\d)")
_ENGLISH = form(r"(?<![\w.])(?P<number>\d{1,6})(?:st|nd|rd|th)(?!\w)")
_HASH = form(r"(?<![\w#&/])#\s?(?P<number>\d{1,6})(?![\w#]|\.\d)")

# 3#楼 is 三号楼.
_HASH_AFTER = form(r"(?<=\d)#(?![\w#])")


def _read_ordinal(match: Match) -> str:
    return f"第{spell_cardinal(match['number'])}"


def _read_hash(match: Match) -> str:
    """Read #5 as 五号."""
    return f"{spell_cardinal(match['number'])}号"


RULES = (
    Rule("ordinal", _NUMERO, _read_ordinal, FormStart.LETTER | FormStart.SIGN),
    Rule("ordinal", _ENGLISH, _read_ordinal, FormStart.DIGIT),
    Rule("ordinal", _HASH_AFTER, replace_with("号"), FormStart.SIGN),
    Rule("ordinal", _HASH, _read_hash, FormStart.SIGN),
)
