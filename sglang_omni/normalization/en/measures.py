"""Numbers with units: 5 km, 3.5 cm², 100 km/h, -5°C, 50%, 5'11", 2-3 kg, 2x8 m2."""

import re

from sglang_omni.normalization.en.cardinals import SCALE_WORDS
from sglang_omni.normalization.en.fractions import FRACTION, is_below_one, spell_fraction
from sglang_omni.normalization.en.numbers import (
    BLANK,
    COMMA_DECIMAL,
    DASH,
    NUMBER,
    spell_integer,
    spell_number,
    spell_pairs,
    text_before,
    with_point,
)
from sglang_omni.normalization.en.units import UNITS, UnitName, find_unit
from sglang_omni.normalization.rule import FormStart, Match, Rule

_SCALE = "|".join(SCALE_WORDS)
_LETTERS = r"[A-Za-zµμΩΩ]"
_SIMPLE = (
    rf"(?:(?:(?:sq|cu|fl|deg)\.? ?|°{BLANK}?|º)?{_LETTERS}{{1,6}}(?:[²³]|\^?[23](?!\d))?"
    r"|[%％‰°℃℉])"
)
UNIT = rf"{_SIMPLE}(?:{BLANK}?/{BLANK}?(?:(?:100{BLANK}?)?{_SIMPLE}(?![A-Za-z])|[a-z]{{3,12}}))?"
_ENGLISH_END = r"(?![^\W_])(?!\.[A-Za-z]\b)"
_VALUE = rf"(?:{FRACTION}|{COMMA_DECIMAL}|{NUMBER}(?:{BLANK}(?:{_SCALE})(?=[ -]))?)"
_BY = rf"{BLANK}?[x\u00d7*]{BLANK}?"
_FACTORS = rf"(?:{_BY}{NUMBER}){{0,3}}"
_UP_TO = rf"(?:{BLANK}?{DASH}{BLANK}?(?P<high>{_VALUE}))?"
_MEASURE = re.compile(
    rf"(?<![\w.,])(?P<low>{_VALUE})(?P<factors>{_FACTORS}){_UP_TO}(?P<join>-|{BLANK}?)"
    rf"(?P<unit>{UNIT})"
    rf"{_ENGLISH_END}(?P<dot>\.(?=\s[a-z]))?"
)
_BARE = re.compile(rf"(?<![\w/.])(?P<unit>{UNIT})(?![\w/])")
_SUPERSCRIPTS = str.maketrans("⁺⁻⁰¹²³⁴⁵⁶⁷⁸⁹", "+-0123456789")
_POWER_OF_TEN = re.compile(
    rf"(?<![\w.,])(?P<mantissa>{NUMBER}){BLANK}?[x\u00d7*·⋅]{BLANK}?10"
    r"(?:\^\{?(?P<power>[-\u2212+]?\d{1,3})\}?|(?P<raised>[⁺⁻]?[⁰¹²³⁴⁵⁶⁷⁸⁹]{1,3}))"
    rf"(?:{BLANK}?(?P<unit>{UNIT}){_ENGLISH_END})?"
)
_FEET = re.compile(
    rf"(?<![\w.])(?P<feet>\d{{1,3}})(?:{BLANK}?['\u2019\u2032]{BLANK}?|ft)"
    r"(?P<inches>\d{1,2}(?:\.\d)?)"
    rf"(?:\"|”|″|''|\u2032\u2032|(?![\w'\u2019]))"
)
_INCHES = re.compile(
    rf"(?<![\w.])(?P<number>{FRACTION}|\d{{1,3}}(?:\.\d)?(?!\d))(?P<mark>[\"”″])(?!\w)"
)
# A mark after a digit is that of inches.
_QUOTE = re.compile(r"(?<!\d)[\"“”]")
_PRIMES = re.compile(r"(?<![\w.])(?P<number>\d{1,4})\u2032(?!\w)")
_LINES = re.compile(
    r"(?<![\w.])(?P<number>240|360|480|540|720|1080|1440|2160)(?P<letter>[pi])(?!\w)"
)
_ARC = r"\d{1,2}(?:\.\d{1,6})?"
_ANGLE = re.compile(
    rf"(?<![\w.])(?P<degrees>\d{{1,3}}(?:\.\d{{1,9}})?)°{BLANK}?"
    rf"(?:(?P<minutes>{_ARC})['\u2019\u2032]{BLANK}?)?"
    rf"(?:(?P<seconds>{_ARC})(?:[\"”″]|''){BLANK}?)?(?P<side>[NSEW])\b"
)
_SIDES = {"N": "north", "S": "south", "E": "east", "W": "west"}
_ARTICLE = re.compile(rf"(?<![\w'\u2019])(?:an?|An?){BLANK}$")
_AFTER_FEET = re.compile(rf"(?:ft\.?|foot|feet|['\u2032]|[x\u00d7]|by){BLANK}?$")
# These are words or names more often than units where a blank stands before them.
_TOUCHING = frozenset({"um", "ug", "us", "un", "deg"})
_NAMES = frozenset({"N", "W", "J", "V", "A", "pA", "EB"})
_WORD_FOLLOWS = re.compile(rf"{BLANK}\w")
_NAME_FOLLOWS = re.compile(rf"{BLANK}(?:\d|[A-Z])")


def _read_measure(match: Match) -> str | None:
    """Read a number, or a range or product of numbers, with a unit."""
    form = match["unit"]
    unit = _find(form)
    if unit is None or not _is_unit(match, form):
        return None
    is_adjective = match["join"] == "-" or _ARTICLE.search(text_before(match)) is not None
    return _join_unit(match, unit, is_adjective)


def _find(form: str) -> UnitName | None:
    """Return the unit of a form, also of L/100km, whose second part has a number."""
    above, hundred, below = re.sub(rf"{BLANK}", " ", form).partition("/100")
    if not hundred:
        return find_unit(above)
    first, second = find_unit(above), find_unit(below.strip())
    if first is None or second is None:
        return None
    return UnitName(*(f"{name} per one hundred {second.many}" for name in (first.one, first.many)))


def _is_unit(match: Match, form: str) -> bool:
    """Tell whether a form that may be a word or a name is a unit here."""
    is_apart = match["join"] != ""
    if form == "in":
        return not is_apart or match["dot"] is not None or _is_after_feet(match)
    if form in _TOUCHING:
        return not is_apart
    if form not in _NAMES:
        return True
    if form == "A" and "." not in match["low"]:
        has_blank = match["join"] not in ("", "-")
        return has_blank and not _WORD_FOLLOWS.match(match.string, match.end())
    return match["join"] != "-" and not _NAME_FOLLOWS.match(match.string, match.end())


def _is_after_feet(match: Match) -> bool:
    return match["factors"] != "" or _AFTER_FEET.search(text_before(match)) is not None


def _join_unit(match: Match, unit: UnitName, is_adjective: bool) -> str:
    low, high = match["low"], match["high"]
    if not match["factors"] and not high and _is_fraction(low) and is_below_one(low):
        return _spell_part(low, unit, is_adjective)
    words = _spell_value(low)
    for sign, factor in re.findall(rf"([x\u00d7*]){BLANK}?({NUMBER})", match["factors"]):
        words += f" {'times' if sign == '*' else 'by'} {spell_number(factor)}"
    words += f" to {_spell_value(high)}" if high else ""
    is_one = not high and not match["factors"] and low == "1"
    return f"{words} {unit.name(is_one=is_one or is_adjective)}"


def _spell_part(fraction: str, unit: UnitName, is_adjective: bool) -> str:
    """Read less than one: "half a pound", "three quarters of a mile", "half mile"."""
    words = spell_fraction(fraction)
    if words.endswith("half"):
        words = "half"
    if is_adjective:
        return f"{words} {unit.one}"
    article = "an" if unit.one[0] in "aeio" or unit.one == "hour" else "a"
    return (
        f"{words} {article} {unit.one}" if words == "half" else f"{words} of {article} {unit.one}"
    )


def _is_fraction(value: str) -> bool:
    return re.fullmatch(FRACTION, value) is not None


def _spell_value(value: str) -> str:
    if _is_fraction(value):
        return spell_fraction(value)
    number, _, scale = re.sub(BLANK, " ", value).partition(" ")
    return f"{spell_number(with_point(number))} {scale}".strip()


def _read_power_of_ten(match: Match) -> str | None:
    """Read 6×10^24 kg as "six times ten to the power of twenty-four kilograms"."""
    power = match["power"] or match["raised"].translate(_SUPERSCRIPTS)
    unit = _find(match["unit"]) if match["unit"] else None
    if match["unit"] and unit is None:
        return None
    words = f"{spell_number(match['mantissa'])} times ten to the power of {spell_number(power)}"
    return f"{words} {unit.many}" if unit else words


def _read_bare(match: Match) -> str | None:
    """Read a unit without a number, if nothing else looks like it: m², km/h, per lb."""
    form = match["unit"]
    if text_before(match).endswith("per "):
        unit = _find(form)
        return unit.one if unit is not None else None
    if not re.search(r"[²³]|^[^/]{1,3}/(?:h|s|min|kg|L|l|dL|m[²³])$", form):
        return None
    unit = _find(form)
    return unit.many if unit is not None else None


def _read_feet(match: Match) -> str:
    """Read 5'11" as "five foot eleven"."""
    inches = spell_number(match["inches"])
    return f"{spell_integer(match['feet'])} foot {inches}"


def _read_inches(match: Match) -> str | None:
    """Read 12" as "twelve inches", unless the mark closes a quotation."""
    if match["mark"] != "″" and len(_QUOTE.findall(text_before(match))) % 2:
        return None
    number = match["number"]
    is_adjective = _ARTICLE.search(text_before(match)) is not None
    if _is_fraction(number) and is_below_one(number):
        return _spell_part(number, UNITS["in"], is_adjective)
    return f"{_spell_value(number)} {UNITS['in'].name(is_one=number == '1' or is_adjective)}"


def _read_primes(match: Match) -> str:
    return f"{spell_integer(match['number'])} {'foot' if match['number'] == '1' else 'feet'}"


def _read_lines(match: Match) -> str:
    """Read 1080p as "ten eighty p"."""
    return f"{spell_pairs(match['number'])} {match['letter']}"


def _read_angle(match: Match) -> str:
    """Read the latitude 40°26'46"N: "forty degrees twenty-six minutes ... north"."""
    words = ""
    for part in ("degrees", "minutes", "seconds"):
        if match[part]:
            name = part[:-1] if match[part] == "1" else part
            words += f"{spell_number(match[part])} {name} "
    return words + _SIDES[match["side"]]


RULES = (
    Rule("angle", _ANGLE, _read_angle, FormStart.DIGIT),
    Rule("height", _FEET, _read_feet, FormStart.DIGIT),
    Rule("measure", _POWER_OF_TEN, _read_power_of_ten, FormStart.DIGIT),
    # ½ is a letter among the tokens.
    Rule("measure", _MEASURE, _read_measure, FormStart.DIGIT | FormStart.SIGN | FormStart.LETTER),
    Rule("lines", _LINES, _read_lines, FormStart.DIGIT),
    Rule("length", _INCHES, _read_inches, FormStart.DIGIT | FormStart.LETTER),
    Rule("length", _PRIMES, _read_primes, FormStart.DIGIT),
    Rule("unit", _BARE, _read_bare, FormStart.LETTER),
)
