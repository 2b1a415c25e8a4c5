"""Dates in digits: 2024-03-15, 2008/08, 08/08, 3月5日-8日, 9·11."""

from sglang_omni.normalization.rule import FormStart, Match, Rule, replace_with
from sglang_omni.normalization.zh.numbers import spell_cardinal, spell_digits
from sglang_omni.normalization.zh.patterns import DASH_SIGN, DAY, MONTH, form, one_of

# What tells a date from a fraction in 3/15上午 and 3/15 (周五).
_DAY_CONTEXT = "(?=[日号]|上午|下午|早上|晚上|晚|凌晨|中午|当天|国庆|元旦|假期|[（(]?(?:周|星期))"
_AFTER_DATE = r"(?![\d/]|[-.]\d(?!\d{3}[-/.]))"
_TO_TIME = r"(?:T(?=\d\d:))?"

_YEAR_MONTH_DAY = form(
    rf"(?:(?<![\d./-])|(?<=\d[-~]))(?P<year>\d{{4}})(?P<sign>[-/.·])(?P<month>{MONTH})(?P=sign)(?P<day>{DAY})"
    rf"(?:[日号])?{_AFTER_DATE}{_TO_TIME}"
)
_DAY_MONTH_YEAR = form(
    rf"(?<![\d./-])(?P<first>\d{{1,2}})(?P<sign>[-/.])(?P<second>\d{{1,2}})(?P=sign)"
    rf"(?P<year>(?:1[5-9]|20)\d\d){_AFTER_DATE}"
)
_YEAR_MONTH = form(
    rf"(?<![\d./-])(?P<year>(?:1[5-9]|20)\d\d)(?:/(?P<slash>{MONTH})|-(?P<dash>1[0-2]|0[1-9]))"
    r"(?:月(?!\d))?(?![\d/%]|[-.:]\d)"
)
_MONTH_YEAR = form(
    rf"(?<![\d./-])(?P<month>{MONTH})[-/](?P<year>(?:1[5-9]|20)\d\d)(?![\d/%A-Za-z]|[-.:]\d)"
)
# Without a year, a date has a nought somewhere, or words around it that tell.
_MONTH_DAY = form(
    rf"(?<![\d./-])(?:(?P<m1>0[1-9])[-/](?P<d1>{DAY})|(?P<m2>{MONTH})[-/](?P<d2>0[1-9])"
    rf"|(?P<m3>{MONTH})/(?P<d3>{DAY}){_DAY_CONTEXT})(?:[日号])?(?![\d/%]|[-.:]\d)"
)
_EVENTS = (
    "事件|事变|晚会|运动|大?地震|恐怖|袭击|惨案|劳动节|假期|长假|黄金周|国庆|大促"
    "|购物|广场|国际|起义|政变|讲话|消费者|反恐"
)
_EVENT = form(rf"(?P<month>{MONTH})\s?[·.•・]\s?(?P<day>{DAY})(?=[”\"」\u2019']?(?:{_EVENTS}))")
# A raised dot joins the month and the day of an event: 5·12汶川地震.
_RAISED_DOT = form(rf"(?<![\d·])(?P<month>{MONTH})[·・](?P<day>{DAY})(?![\d·])")
_MONTHS = form(r"(?<=\d)/(?=\d{1,2}[月日号])")
_MONTH_AND_DAY = form(rf"(?<!\d)(?P<month>{MONTH})月(?P<day>{DAY})(?!\d)(?=[日号]?)")
# The nought of 02月 and 08时 is not spoken.
_LEADING_ZERO = form(r"(?<![\d.])0[1-9](?=[月日号点时])")
NAMED_YEARS = ("赛季", "学年", "财年", "年度", "榜单")
_SEASON = form(
    rf"(?<!\d)(?P<first>(?:19|20)\d\d){DASH_SIGN}(?P<last>\d\d(?:\d\d)?)(?={one_of(NAMED_YEARS)})"
)


def spell_date(year: str, month: str, day: str = "") -> str:
    """Spell a date: 2024, 03 and 15 are 二零二四年三月十五日."""
    words = f"{spell_digits(year)}年{spell_cardinal(month)}月"
    return f"{words}{spell_cardinal(day)}日" if day else words


def _read_year_month_day(match: Match) -> str:
    return spell_date(match["year"], match["month"], match["day"])


def _read_day_month_year(match: Match) -> str | None:
    """Read 03/15/2024 and 15/03/2024: the month is first unless it cannot be."""
    month, day = match["first"], match["second"]
    if int(month) > 12:
        month, day = day, month
    if not (0 < int(month) <= 12 and 0 < int(day) <= 31):
        return None
    return spell_date(match["year"], month, day)


def _read_year_month(match: Match) -> str:
    return spell_date(match["year"], match["slash"] or match["dash"])


def _read_month_year(match: Match) -> str:
    return spell_date(match["year"], match["month"])


def _read_month_day(match: Match) -> str:
    month = match["m1"] or match["m2"] or match["m3"]
    day = match["d1"] or match["d2"] or match["d3"]
    return f"{spell_cardinal(month)}月{spell_cardinal(day)}日"


def _read_event(match: Match) -> str:
    month = match["month"].lstrip("0")
    return ("十" if month == "10" else spell_digits(month)) + spell_digits(match["day"])


def _read_month_and_day(match: Match) -> str:
    """Read 3月5日 without the last character, which stays as it is."""
    return f"{spell_cardinal(match['month'])}月{spell_cardinal(match['day'])}"


def _read_season(match: Match) -> str:
    return f"{spell_digits(match['first'])}到{spell_digits(match['last'])}"


# Tried before versions: 2024.3.15 is a date.
FULL_RULES = (
    Rule("date", _YEAR_MONTH_DAY, _read_year_month_day, FormStart.DIGIT),
    Rule("date", _DAY_MONTH_YEAR, _read_day_month_year, FormStart.DIGIT),
)
RULES = (
    Rule("date", _SEASON, _read_season, FormStart.DIGIT),
    Rule("date", _YEAR_MONTH, _read_year_month, FormStart.DIGIT),
    Rule("date", _MONTH_YEAR, _read_month_year, FormStart.DIGIT),
    Rule("date", _EVENT, _read_event, FormStart.DIGIT),
    Rule("date", _RAISED_DOT, _read_event, FormStart.DIGIT),
    Rule("date", _MONTHS, replace_with("、"), FormStart.SIGN),
    Rule("date", _MONTH_DAY, _read_month_day, FormStart.DIGIT),
    Rule("date", _LEADING_ZERO, lambda match: spell_cardinal(match[0]), FormStart.DIGIT),
    Rule("date", _MONTH_AND_DAY, _read_month_and_day, FormStart.DIGIT),
)
