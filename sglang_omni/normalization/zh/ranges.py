"""Ranges of numbers: 5-10个, 3~5天, 1.5-2万, and the sign between two other readings."""

from sglang_omni.normalization.rule import FormStart, Match, Rule, replace_with
from sglang_omni.normalization.zh.cardinals import COUNTED
from sglang_omni.normalization.zh.numbers import spell_cardinal, spell_count
from sglang_omni.normalization.zh.patterns import (
    DASH_SIGN,
    MINUS,
    NUMBER,
    form,
    text_before,
)

_RANGE = form(
    rf"(?P<minus>{MINUS})?(?<![\w.])(?P<first>{NUMBER})\s?{DASH_SIGN}\s?(?P<minus2>[-\u2212])?"
    rf"(?P<last>{NUMBER})(?![\w-]|\s?[=+\u00d7÷])(?P<counted>(?=\s?{COUNTED}))?"
)
# The sign between readings of another class: 3万-5万, 3月5日-8日, 周一~周五, 第1名-第3名.
_NEXT = (
    r"(?=[\d$¥€£第]|HK\$|US\$|周[一二三四五六日天]|星期|公元|凌晨|上午|下午|晚上"
    r"|[-\u2212]\d{1,3}(?:\.\d)?\s?[℃°])"
)
_BETWEEN = form(rf"(?<=\d)\s?{DASH_SIGN}\s?{_NEXT}")
_AFTER_UNIT = form(rf"(?<=[^\s\d，。、])\s?{DASH_SIGN}\s?{_NEXT}")
_NUMBER_AND_UNIT = form(
    r"\d\s?(?:[年月日号时点分秒元角%‰℃°个万亿千百天周名级度岁米里斤克瓦倍]{1,3}|小时|分钟|美元|公里"
    r"|°?[A-Za-zμ]{1,4}|[AaPp]\.?[Mm]\.?)\Z"
)
_WEEKDAYS = form(
    rf"(?:(?<=周[一二三四五六日天])|(?<=期[一二三四五六日天])|(?<=月份))\s?{DASH_SIGN}\s?(?=[周星一二三四五六日天])"
)
_HAN_NUMBERS = form(r"(?<=[一二三四五六七八九十百千万亿])[~～](?=[一二三四五六七八九十])")


def _read_range(match: Match) -> str:
    """Read 2-3个 as 两到三个, 1-2 as 一到二, and 第1-3名 as 第一到第三名."""
    is_ordinal = match.string[max(0, match.start() - 1) : match.start()] == "第"
    spell = spell_cardinal if is_ordinal or match["counted"] is None else spell_count
    minus, minus2 = "负" * bool(match["minus"]), "负" * bool(match["minus2"])
    again = "第" if is_ordinal else ""
    return f"{minus}{spell(match['first'])}到{again}{minus2}{spell(match['last'])}"


def _read_after_unit(match: Match) -> str | None:
    """Read the sign of 3万-5万; in 今天-5℃ no number stands in front of it."""
    return "到" if _NUMBER_AND_UNIT.search(text_before(match, 16)) else None


# Tried before amounts and measures, which would read a minus.
EARLY_RULES = (Rule("range", _AFTER_UNIT, _read_after_unit, FormStart.SIGN),)
RULES = (
    Rule("range", _RANGE, _read_range, FormStart.DIGIT | FormStart.SIGN),
    Rule("range", _BETWEEN, replace_with("到"), FormStart.SIGN),
    Rule("range", _WEEKDAYS, replace_with("到"), FormStart.SIGN),
    Rule("range", _HAN_NUMBERS, replace_with("到"), FormStart.SIGN),
)
