"""Roman numerals where they are sure: 第III章, II型糖尿病, Ⅳ级."""

import unicodedata

from sglang_omni.normalization.rule import FormStart, Match, Rule
from sglang_omni.normalization.zh.numbers import spell_cardinal
from sglang_omni.normalization.zh.patterns import form

_VALUES = {"I": 1, "V": 5, "X": 10, "L": 50, "C": 100}
_ORDER = "X{0,3}(?:IX|IV|V?I{0,3})"
_AFTER_ORDINAL = form(rf"(?<=第)(?P<roman>{_ORDER})(?![A-Za-z0-9])")
# A lone I, V, X, L or C before these may be a letter: C级, V型.
_BEFORE_KIND = form(
    rf"(?<![\w.])(?P<roman>(?=[IVX]{{2}}){_ORDER}|I)(?=[期型类级度区象限](?!n))(?![A-Za-z0-9])"
)
_ONE_CHARACTER = form(r"[\u2160-\u217f\u2460-\u249b\u2776-\u2793\u3220-\u3229\u3280-\u3289]++")


def _read_roman(match: Match) -> str | None:
    return spell_cardinal(str(_value(match["roman"]))) if match["roman"] else None


def _value(roman: str) -> int:
    """Return the value of a Roman numeral: XIV is 14."""
    values = [_VALUES[letter] for letter in roman]
    return sum(
        -value if value < following else value
        for value, following in zip(values, [*values[1:], 0], strict=True)
    )


def _read_characters(match: Match) -> str:
    """Read Ⅲ, ③, ⒊ and ㈢ as 三."""
    return "，".join(map(_spell_character, match[0]))


def _spell_character(character: str) -> str:
    return spell_cardinal(str(int(unicodedata.numeric(character))))


RULES = (
    Rule("roman", _AFTER_ORDINAL, _read_roman, FormStart.LETTER),
    Rule("roman", _BEFORE_KIND, _read_roman, FormStart.LETTER),
)
# Tried before markup, which removes the same characters as emoji.
CHARACTERS = (Rule("roman", _ONE_CHARACTER, _read_characters, FormStart.SIGN | FormStart.LETTER),)
