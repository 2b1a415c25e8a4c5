"""Measures: 120km/h, 25 kg, 38°C, -3~5℃, 12.5%, 100Mbps, 20元/人."""

from sglang_omni.normalization.rule import FormStart, Match, Rule
from sglang_omni.normalization.zh.numbers import spell_cardinal, spell_count
from sglang_omni.normalization.zh.patterns import (
    DASH,
    MINUS,
    NUMBER,
    SCALE,
    form,
    one_of,
    text_before,
)
from sglang_omni.normalization.zh.units import (
    PER_HAN,
    PER_NAMES,
    RATE,
    RATES,
    SPACED,
    TEMPERATURES,
    UNIT,
    UNITS,
)

_VALUE = (
    rf"(?P<minus>{MINUS}|[±]|(?<![\w)\]])\+)?(?<![A-Za-z_])(?P<number>{NUMBER})(?P<scale>{SCALE})?"
)
_VALUE2 = rf"(?P<minus2>[-\u2212±+])?(?P<number2>{NUMBER})(?P<scale2>{SCALE})?"
_END = r"(?![A-Za-z0-9_²³])"
_PERCENT_SIGN = {"%": "百分之", "‰": "千分之", "‱": "万分之"}
_PER = rf"(?:/(?P<per_number>10{{1,3}})?(?P<per>{one_of(PER_NAMES)}|{one_of(PER_HAN)}))?"

_RATE = form(rf"{_VALUE}(?:\s?{DASH}\s?{_VALUE2})?\s?(?P<rate>{RATE}){_END}")
_MEASURE = form(
    rf"{_VALUE}(?:\s?(?P<first_unit>{UNIT})?\s?{DASH}\s?{_VALUE2})?"
    rf"(?:\s(?P<spaced>{SPACED})|(?P<unit>{UNIT})){_PER}{_END}"
)
_PERCENT = form(
    rf"{_VALUE}(?:\s?(?P<first>[%‰])?\s?{DASH}\s?{_VALUE2})?\s?(?P<percent>[%‰‱])(?!\d)"
)
_ANGLE = form(
    rf"(?P<degrees>{NUMBER})[°º](?P<minutes>\d{{1,2}}(?:\.\d+)?)[\u2032'\u2019](?:(?P<seconds>{NUMBER})[″\"”])?"
)
_FEET = form(r"(?<![\w.])(?P<feet>\d{1,2})[\u2032'](?P<inches>\d{1,2})[″\"](?!\d)")
# 3.8*10^5km: the power has been read.
_AFTER_POWER = form(rf"(?<=\d)(?P<unit>{UNIT}){_END}")
_POWER_BEFORE = form(r"\^-?\d{1,3}\Z")
# Without a number: km/h is 公里每小时.
_UNITS_ALONE = form(rf"(?<![\w])(?P<unit>{UNIT})/(?P<per>{UNIT}){_END}")
# 20元/人: the number and 元 have been read, and the slash and the name are left.
_PER_AFTER_HAN = form(
    rf"(?<=[\d元块角分斤币镑次个件人张吨万千百米升度]|[A-Za-z㎡])/(?P<per>{one_of(PER_HAN)}|{UNIT}{_END})"
)
_NUMBER_BEFORE = form(rf"\d\s?{SCALE}{{0,2}}[^\s\d，。、；,;]{{0,4}}\Z")
# A product, not a measure: iPhone 5s.
_NAME_BEFORE = form(r"[A-Za-z]\s\Z")
_SPEED_BEFORE = form(r"(?:时速|速度)[为达约是到：: ]{0,2}\Z|每小时\Z")


def _minus(sign: str | None, *, is_temperature: bool = False) -> str:
    if sign is None:
        return ""
    if sign in ("±", "+"):
        return "正负" if sign == "±" else "正"
    return "零下" if is_temperature else "负"


def _value(match: Match, suffix: str = "", *, is_temperature: bool = False) -> str:
    """Spell the first or the second number of a measure."""
    minus = _minus(match[f"minus{suffix}"], is_temperature=is_temperature)
    return minus + spell_count(match[f"number{suffix}"]) + (match[f"scale{suffix}"] or "")


def _values(match: Match, unit: str = "", *, is_temperature: bool = False) -> str:
    """Spell the number of a measure, or both ends of its range; `unit` is that of the first."""
    first = _value(match, is_temperature=is_temperature)
    if match["number2"] is None:
        return first
    return f"{first}{unit}到{_value(match, '2', is_temperature=is_temperature)}"


def _read_rate(match: Match) -> str:
    per, name = RATES[match["rate"]]
    return f"{per}{_values(match)}{name}"


def _read_measure(match: Match) -> str | None:
    """Read 120km/h as 每小时一百二十公里, 25kg as 二十五公斤."""
    unit = match["unit"] or match["spaced"]
    if len(unit) == 1 and _NAME_BEFORE.search(text_before(match, 2)):
        return None
    first = match["first_unit"]
    values = _values(
        match,
        UNITS[first] if first and first != unit else "",
        is_temperature=unit in TEMPERATURES,
    )
    return f"{_per_words(match)}{values}{UNITS[unit]}"


def _per_words(match: Match) -> str:
    per = match["per"]
    if per is None or (per == "h" and _SPEED_BEFORE.search(text_before(match, 8))):
        return ""
    number = spell_count(match["per_number"]) if match["per_number"] else ""
    return f"每{number}{PER_NAMES.get(per, per)}"


def _read_percent(match: Match) -> str:
    """Read 20%-30% as 百分之二十到百分之三十, 10-20% as 百分之十到二十."""
    last = _PERCENT_SIGN[match["percent"]]
    if match["number2"] is None:
        return _spell_percent(match, "", last)
    second = "" if match["first"] is None else last
    return f"{_spell_percent(match, '', last)}到{_spell_percent(match, '2', second)}"


def _spell_percent(match: Match, suffix: str, part: str) -> str:
    number, scale = match[f"number{suffix}"], match[f"scale{suffix}"] or ""
    words = "百" if number == "100" and part == "百分之" else spell_cardinal(number)
    return f"{_minus(match[f'minus{suffix}'])}{part}{words}{scale}"


def _read_angle(match: Match) -> str:
    words = f"{spell_cardinal(match['degrees'])}度{spell_cardinal(match['minutes'])}分"
    return f"{words}{spell_cardinal(match['seconds'])}秒" if match["seconds"] else words


def _read_feet(match: Match) -> str:
    return f"{spell_count(match['feet'])}英尺{spell_count(match['inches'])}英寸"


def _read_per(match: Match) -> str | None:
    """Read the slash of 20元/人 as 每: 二十元每人."""
    if not _NUMBER_BEFORE.search(text_before(match, 12)):
        return None
    return f"每{UNITS.get(match['per'], match['per'])}"


def _read_units_alone(match: Match) -> str | None:
    unit, per = match["unit"], match["per"]
    if len(unit) == 1 and len(per) == 1 and unit + per != "ms":
        return None
    return f"{UNITS[unit]}每{UNITS[per]}"


def _read_after_power(match: Match) -> str | None:
    return UNITS[match["unit"]] if _POWER_BEFORE.search(text_before(match, 6)) else None


RULES = (
    Rule("measure", _AFTER_POWER, _read_after_power, FormStart.LETTER),
    Rule("measure", _UNITS_ALONE, _read_units_alone, FormStart.LETTER),
    Rule("measure", _ANGLE, _read_angle, FormStart.DIGIT),
    Rule("measure", _FEET, _read_feet, FormStart.DIGIT),
    Rule("measure", _PERCENT, _read_percent, FormStart.DIGIT | FormStart.SIGN),
    Rule("measure", _RATE, _read_rate, FormStart.DIGIT | FormStart.SIGN),
    Rule("measure", _MEASURE, _read_measure, FormStart.DIGIT | FormStart.SIGN),
    Rule("measure", _PER_AFTER_HAN, _read_per, FormStart.SIGN),
)
