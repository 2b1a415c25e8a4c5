"""Spell out dates, times, money, measures and quantities in Chinese text, as the reference does.

The rules are tried in the order given here. The finite-state grammar (`grammar.py`) handles the
numbers that no rule matches.
"""

import re
from collections.abc import Callable

from sglang_omni.models.ming.text.reference.numerals import (
    spell_cardinal,
    spell_clock_number,
    spell_digits,
)

Match = re.Match[str]
Step = tuple[re.Pattern[str], Callable[[Match], str]]

CURRENCIES = {"￥": "元", "¥": "元", "$": "美元", "€": "欧元", "£": "英镑"}
MEASURES = {
    "km/h": "千米每小时",
    "kg": "千克",
    "km": "千米",
    "cm": "厘米",
    "mm": "毫米",
    "ml": "毫升",
    "mL": "毫升",
    "mg": "毫克",
    "GHz": "吉赫兹",
    "MHz": "兆赫兹",
    "kHz": "千赫兹",
    "Hz": "赫兹",
    "g": "克",
    "m": "米",
    "L": "升",
    "℃": "摄氏度",
    "°C": "摄氏度",
    "℉": "华氏度",
    "°F": "华氏度",
}
# A lone 2 before one of these is 两.
CLASSIFIERS = "个位人次天年只条件名本台张种块元倍岁层份家场杯瓶双辆座"

_N = r"\d+(?:\.\d+)?"
_FREE = r"(?<![\dA-Za-z.])"  # Not inside a longer number or a name such as X1.
_SIGNED = rf"{_FREE}(?<![\dA-Za-z]-)(-?{_N})"
_UNITS = "|".join(map(re.escape, sorted(MEASURES, key=len, reverse=True)))


def _read_date(match: Match) -> str:
    return f"{spell_digits(match[1])}年{spell_cardinal(match[2])}月{spell_cardinal(match[3])}日"


def _read_day(match: Match) -> str:
    return f"{spell_cardinal(match[1])}月{spell_cardinal(match[2])}{match[3]}"


def _read_time(match: Match) -> str:
    """Read 12:05:30 as 十二点零五分三十秒."""
    hour, minute, second = match.groups()
    seconds = f"{spell_clock_number(second)}秒" if second else ""
    if not second and not int(minute):
        return f"{spell_cardinal(hour)}点"
    return f"{spell_cardinal(hour)}点{spell_clock_number(minute)}分{seconds}"


def _read_money(match: Match) -> str:
    return f"{spell_cardinal(match[2])}{match[3] or ''}{CURRENCIES[match[1]]}"


def _read_percent(match: Match) -> str:
    """Put 百分之 first, after the sign."""
    sign = "负" if match[1].startswith("-") else ""
    return f"{sign}百分之{spell_cardinal(match[1].removeprefix('-'))}"


def _read_percent_range(match: Match) -> str:
    return f"百分之{spell_cardinal(match[1])}至百分之{spell_cardinal(match[2])}"


def _read_fraction(match: Match) -> str:
    return f"{spell_cardinal(match[2])}分之{spell_cardinal(match[1])}"


def _read_measure(match: Match) -> str:
    return f"{spell_cardinal(match[1])}{MEASURES[match[2]]}"


def _read_telephone(match: Match) -> str:
    return spell_digits(match[0].replace("-", ""), one="幺")


def _read_quantity(match: Match) -> str:
    number, next_character = match[1], match.string[match.end()]
    is_ordinal = match.string[: match.start()].endswith("第")
    if number == "2" and next_character in CLASSIFIERS and not is_ordinal:
        return "两"
    return spell_cardinal(number)


_TIME = re.compile(r"(?<![\d:.])(\d{1,2}):(\d{1,2})(?::(\d{1,2}))?(?![\d:])")

_STEPS: tuple[Step, ...] = (
    (re.compile(r"(?<!\d)(\d{4})[-/.](\d{1,2})[-/.](\d{1,2})(?!\d)"), _read_date),
    (re.compile(r"(?<!\d)(\d{4})(?=年)"), lambda m: spell_digits(m[1])),
    (re.compile(r"(?<!\d)(\d{1,2})月(\d{1,2})([日号])"), _read_day),
    (_TIME, _read_time),
    (re.compile(rf"([￥¥$€£])({_N})([万亿]?)"), _read_money),
    (re.compile(rf"(?<![\d.])({_N})%?[~～\-—至到]({_N})%"), _read_percent_range),
    (re.compile(rf"{_SIGNED}%"), _read_percent),
    (re.compile(r"(?<![\d/])(\d+)/(\d+)(?![\d/])"), _read_fraction),
    (re.compile(rf"{_SIGNED}\s?({_UNITS})(?![A-Za-z])"), _read_measure),
    (re.compile(r"(?<![\d-])(?:0\d{2,3}-?\d{7,8}|1[3-9]\d{9})(?![\d-])"), _read_telephone),
    (
        re.compile(rf"{_FREE}({_N})[-~～]({_N})(?=[\u4e00-\u9fff])"),
        lambda m: f"{spell_cardinal(m[1])}至{spell_cardinal(m[2])}",
    ),
    (re.compile(rf"{_SIGNED}(?=[\u4e00-\u9fff])"), _read_quantity),
    # Too long to read as a quantity, and slow in the grammar.
    (re.compile(r"\d{13,}"), lambda m: spell_digits(m[0])),
)


def spell_out_chinese(text: str) -> str:
    """Spell out numbers where the context determines how they are read."""
    for pattern, read in _STEPS:
        text = pattern.sub(read, text)
    return text
