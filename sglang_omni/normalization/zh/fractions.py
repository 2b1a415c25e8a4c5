"""Fractions: 3/4, 1又1/5, ½, 24/7."""

import unicodedata

from sglang_omni.normalization.rule import FormStart, Match, Rule, replace_with
from sglang_omni.normalization.zh.numbers import spell_cardinal
from sglang_omni.normalization.zh.patterns import MINUS, form, text_before
from sglang_omni.normalization.zh.units import UNIT, UNITS

_VULGAR = "¼½¾⅐⅑⅒⅓⅔⅕⅖⅗⅘⅙⅚⅛⅜⅝⅞"

_FRACTION = form(
    rf"(?P<minus>{MINUS})?(?:(?<![\w/.])(?P<whole>\d{{1,6}})\s?又\s?)?(?<![A-Za-z/.])"
    rf"(?P<top>\d{{1,9}})\s?/\s?(?P<bottom>\d{{1,9}}(?:\.\d{{1,3}})?)(?![\d/月日号]|\.\d)(?:\s?(?P<unit>{UNIT})(?![\w²³]))?(?!\w)"
)
_VULGAR_FRACTION = form(rf"(?P<whole>\d{{1,6}})?(?P<signs>[{_VULGAR}]++)")
_ALWAYS = form(r"(?<![\d/])24\s?/\s?7(?![\d/]|\.\d)")
_LEADING_ZERO = form(r"0\d")
_EQUALS = form(r"\s?=")
_PRESSURE_BEFORE = form(r"血压.{0,6}\Z")


def _spell_fraction(top: str, bottom: str, whole: str | None) -> str:
    part = f"{spell_cardinal(bottom)}分之{spell_cardinal(top)}"
    return f"{spell_cardinal(whole)}又{part}" if whole else part


def _read_fraction(match: Match) -> str | None:
    """Read 3/4 as 四分之三; the numbers of a blood pressure stand side by side."""
    top, bottom = match["top"], match["bottom"]
    unit = UNITS[match["unit"]] if match["unit"] else ""
    if _PRESSURE_BEFORE.search(text_before(match, 10)):
        return f"{spell_cardinal(top)}，{spell_cardinal(bottom)}{unit}"
    is_division = _EQUALS.match(match.string, match.end()) and float(top) > float(bottom)
    if is_division or float(bottom) == 0 or _LEADING_ZERO.match(bottom):
        return None
    words = _spell_fraction(top, bottom, match["whole"]) + unit
    return f"负{words}" if match["minus"] else words


def _read_vulgar_fraction(match: Match) -> str:
    first, *others = (_spell_vulgar(sign) for sign in match["signs"])
    whole = f"{spell_cardinal(match['whole'])}又" if match["whole"] else ""
    return "，".join((whole + first, *others))


def _spell_vulgar(sign: str) -> str:
    top, _, bottom = unicodedata.normalize("NFKC", sign).partition("\u2044")
    return _spell_fraction(top, bottom, None)


RULES = (
    Rule("fraction", _ALWAYS, replace_with("每周七天每天二十四小时"), FormStart.DIGIT),
    Rule("fraction", _FRACTION, _read_fraction, FormStart.DIGIT | FormStart.SIGN),
    Rule("fraction", _VULGAR_FRACTION, _read_vulgar_fraction, FormStart.DIGIT | FormStart.LETTER),
)
