"""Amounts of money: ¥13.5, HK$20, 500美元, 1.5亿, CNY 1.25, $5M, ¥100-200."""

from sglang_omni.normalization.rule import FormStart, Match, Rule
from sglang_omni.normalization.zh.currencies import (
    CURRENCIES,
    POWER_WORDS,
    POWERS,
    WRITTEN_NAMES,
)
from sglang_omni.normalization.zh.numbers import spell_multiple, spell_short
from sglang_omni.normalization.zh.patterns import DASH, MINUS, NUMBER, SCALE, form, one_of

_ALL_POWERS = {**POWERS, **POWER_WORDS}
_POWER = rf"(?:{one_of(POWERS)}|\s?{one_of(POWER_WORDS)})(?![A-Za-z0-9])"
_MARK = CURRENCIES.marks
_NAME = one_of(WRITTEN_NAMES)

_BEFORE = form(
    rf"(?P<minus>{MINUS})?(?<![A-Za-z])(?P<mark>{_MARK})\s?(?P<inner>[-\u2212])?"
    rf"(?P<number>{NUMBER})(?P<scale>\s?{SCALE}(?![分度])|{_POWER})?"
    rf"(?:\s?{DASH}\s?(?:{_MARK}\s?)?(?P<number2>{NUMBER})(?P<scale2>{SCALE}|{_POWER})?)?"
    rf"(?:\s?(?:{_NAME}|USD|CNY|RMB)(?![A-Za-z]))?"
)
_AFTER = form(
    rf"(?P<minus>{MINUS})?(?P<number>{NUMBER})(?P<scale>{SCALE}|{_POWER})?"
    rf"(?:\s?{DASH}\s?(?P<number2>{NUMBER})(?P<scale2>{SCALE}|{_POWER})?)?"
    rf"\s?(?P<mark>{_MARK})(?![A-Za-z0-9])(?!\s?\d)"
)
_NAMED = form(
    rf"(?P<minus>{MINUS})?(?P<number>{NUMBER})(?P<scale>{_POWER}|[Ww](?![A-Za-z]))?"
    rf"(?=\s?(?:{SCALE}{{0,2}})?{_NAME})"
)
# 3w粉丝: in Chinese, w is short for 万.
_TEN_THOUSANDS = form(rf"(?<![\w.])(?P<number>{NUMBER})[wW](?=[+多余人粉元块个条次字阅])")
_LONE_SIGN = form(CURRENCIES.signs)


def _read_amount(match: Match) -> str:
    """Read an amount or a range of amounts, then the currency."""
    groups = match.groupdict()
    is_negative = groups["minus"] or groups.get("inner")
    words = "负" if is_negative else ""
    words += _spell_amount(match["number"], match["scale"])
    if match["number2"]:
        words += f"到{_spell_amount(match['number2'], match['scale2'])}"
    return words + CURRENCIES.names[match["mark"]]


def _spell_amount(number: str, scale: str | None) -> str:
    scale = (scale or "").strip()
    if scale in _ALL_POWERS:
        return spell_multiple(number, _ALL_POWERS[scale])
    return spell_short(number) + scale


def _read_named(match: Match) -> str | None:
    """Read the number in front of a name, which stays as it is: 36.00元 is 三十六元."""
    if match.start() and match.string[match.start() - 1] in "第.":
        return None
    scale = match["scale"]
    words = "负" if match["minus"] else ""
    if scale in ("w", "W"):
        return f"{words}{spell_short(match['number'])}万"
    return words + _spell_amount(match["number"], scale)


def _read_ten_thousands(match: Match) -> str:
    return f"{spell_short(match['number'])}万"


def _read_lone_sign(match: Match) -> str:
    return CURRENCIES.names[match[0]]


RULES = (
    Rule("money", _BEFORE, _read_amount, FormStart.SIGN | FormStart.LETTER),
    Rule("money", _AFTER, _read_amount, FormStart.DIGIT | FormStart.SIGN),
    Rule("cardinal", _TEN_THOUSANDS, _read_ten_thousands, FormStart.DIGIT),
    Rule("money", _NAMED, _read_named, FormStart.DIGIT | FormStart.SIGN),
)
LONE_SIGNS = (Rule("money", _LONE_SIGN, _read_lone_sign, FormStart.SIGN | FormStart.LETTER),)
