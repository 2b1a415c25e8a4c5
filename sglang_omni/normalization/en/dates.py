"""Calendar dates: July 4, 1776; 23rd July; 2024-05-06; 01/07/98; Mon.; May 2020."""

import re

from sglang_omni.normalization.en.months import (
    AMBIGUOUS_MONTHS,
    DAY_FORMS,
    DAYS,
    MONTH_FORMS,
    MONTHS,
    month_of,
)
from sglang_omni.normalization.en.numbers import (
    BLANK,
    SENTENCE_END,
    spell_ordinal,
    text_before,
)
from sglang_omni.normalization.en.years import spell_era_year, spell_short_year
from sglang_omni.normalization.rule import FormStart, Match, Rule

_NAMES = "|".join(sorted(MONTH_FORMS, key=len, reverse=True))
_MONTH = rf"(?i:{_NAMES})(?![^\W_])\.?"
_DAY = r"(?:0?[1-9]|[12]\d|3[01])(?!\d)"
_ORDINAL = r"(?:(?i:st|nd|rd|th)(?![^\W_]))?"
_DASH = rf"{BLANK}?[-\u2010-\u2015]{BLANK}?"
_YEAR = r"(?P<year>(?:1\d|20|21)\d\d|['\u2019]\d\d)(?![\w]|[.,:]\d|%)"
_NO_MORE = r"(?![\w%°]|[.,:/]\d)"
# July 4, 1776; Jan. 5-7 2012; Sept 25th.
_MONTH_FIRST = re.compile(
    rf"(?<!\w)(?P<month>{_MONTH})[ \t\u00a0-]?(?P<day>{_DAY})(?P<ordinal>{_ORDINAL})"
    rf"(?:{_DASH}(?P<last>{_DAY}){_ORDINAL}(?![\w-]))?{_NO_MORE}(?P<comma>,?)(?:[ -]?{_YEAR})?"
)
# 23rd July, 1998; 4-6 June 2014; the 5th of May.
_DAY_FIRST = re.compile(
    rf"(?<![\w.,:/])(?P<day>{_DAY})(?P<ordinal>{_ORDINAL})(?:{_DASH}(?P<last>{_DAY}){_ORDINAL})?"
    rf"(?:[ \t\u00a0-]|(?= ?of ))(?: ?of )?(?P<month>{_MONTH})(?P<comma>,?)(?:[ -]?{_YEAR})?"
)
_MONTH_YEAR = re.compile(rf"(?<!\w)(?P<month>{_MONTH})(?P<comma>,?)[ -]?{_YEAR}")
_ISO = re.compile(
    r"(?<![\w.,/-])(?P<year>\d{4})(?P<separator>[-/.])(?P<month>0?[1-9]|1[0-2])(?P=separator)"
    r"(?P<day>0?[1-9]|[12]\d|3[01])(?:(?P<time>T(?=\d\d:\d\d))|(?![\w/-]|\.\d))"
)
_YEAR_MONTH = re.compile(
    r"(?<![\w.,/-])(?P<year>(?:19|20)\d\d)[-/](?P<month>0[1-9])(?![\w/-]|\.\d)"
)
_MONTH_SLASH_YEAR = re.compile(
    r"(?<![\w.,/-])(?P<month>0?[1-9]|1[0-2])/(?P<year>(?:19|20)\d\d)(?![\w/-])"
)
_NUMERIC = re.compile(
    r"(?<![\w.,/-])(?P<first>\d{1,2})(?P<separator>[-/.])(?P<second>\d{1,2})(?P=separator)"
    r"(?P<year>\d{4}|\d{2})(?![\w/-]|\.\d)"
)
_SHORT = re.compile(r"(?<![\w.,/-])(?P<month>1[0-2]|0?[1-9])/(?P<day>\d{1,2})(?![\w/-]|\.\d| of\b)")
_ABBREVIATION = re.compile(
    r"(?<![\w.])(?P<month>Jan|Feb|Apr|Aug|Sept|Sep|Oct|Nov|Dec)\.(?P<end>\s*\Z|(?=\s|[,;:)-]))"
)
_MONTH_RANGE = re.compile(
    rf"(?<!\w)(?:(?P<month>{_MONTH})(?={_DASH}(?:{_MONTH})(?!\w))"
    rf"|(?<=[-\u2010-\u2015])(?P<last>{_MONTH}))(?!\w)"
)
_DAYS = rf"(?i:{'|'.join(DAY_FORMS)})"
_DAY_NAMES = rf"(?:{_DAYS}|(?i:{'|'.join(DAYS)}))\.?"
_DAY_RANGE = re.compile(
    rf"(?<!\w)(?:(?P<day>{_DAYS})(?={_DASH}{_DAY_NAMES}(?!\w))"
    rf"|(?<=[-\u2010-\u2015])(?P<last>{_DAYS}))(?!\w)\.?"
)
_DAY_BEFORE = re.compile(rf"(?<!\w){_DAY_NAMES}{_DASH}$")
# Sun and Sat without a sign of a date are words.
_WEEKDAY = re.compile(
    rf"(?<![\w.])(?<!\b[Tt]he )(?P<day>{'|'.join(form.title() for form in DAY_FORMS)})"
    r"(?:(?P<dot>\.)(?P<end>\s*\Z|(?=\W))|(?=[,/\u2013-] ?[A-Z\d]| ?\(?\d))"
)
_MONTH_EXPECTED = re.compile(r"(?:\A|(?<!\w)(?i:on|by|until|till|since|of|from|before|after)\s)$")
_MONTH_BEFORE = re.compile(rf"(?<!\w){_MONTH}{_DASH}$")
_DATE_BEFORE = re.compile(
    r"(?<!\w)(?:on|due|dated|until|Mon|Tu|Tue|Tues|Wed|Thu|Thur|Thurs|Fri|Sat|Sun"
    r"|(?:Mon|Tues|Wednes|Thurs|Fri|Satur|Sun)day)\.?,?\s\(?$"
)
_APOSTROPHES = "'\u2019"


def _read_month_first(match: Match) -> str | None:
    """Read "Jul 4, 1776" as "July fourth, seventeen seventy-six"."""
    month = _month_name(match, needs=bool(match["ordinal"] or match["year"]))
    if month is None:
        return None
    days = spell_ordinal(match["day"])
    if match["last"]:
        days += f" to {spell_ordinal(match['last'])}"
    return f"{month} {days}{_tail(match)}"


def _read_day_first(match: Match) -> str | None:
    """Read "23rd July, 1998" as "the twenty-third of July, nineteen ninety-eight"."""
    month = _month_name(match, needs=bool(match["ordinal"] or match["year"]))
    if month is None:
        return None
    has_article = re.search(r"\bthe\s$", text_before(match), re.IGNORECASE) is not None
    days = spell_ordinal(match["day"])
    if match["last"]:
        days += f" to the {spell_ordinal(match['last'])}"
    return f"{'' if has_article else 'the '}{days} of {month}{_tail(match)}{_full_stop(match)}"


def _full_stop(match: Match) -> str:
    """Return the full stop of a sentence that ends with an abbreviation."""
    ends = match[0].endswith(".") and SENTENCE_END.match(match.string, match.end())
    return "." if ends else ""


def _read_month_year(match: Match) -> str | None:
    month = _month_name(match, needs=False)
    return None if month is None else f"{month}{_tail(match)}"


def _month_name(match: Match, *, needs: bool) -> str | None:
    """Return the month, or None for "may 5": `needs` is whether the rest shows a date."""
    form = match["month"]
    is_shown = needs or _MONTH_EXPECTED.search(text_before(match)) is not None
    if form in AMBIGUOUS_MONTHS and not is_shown:
        return None
    return MONTHS[month_of(form) - 1]


def _tail(match: Match) -> str:
    """Return the comma after a day, and the year."""
    year = match["year"]
    if not year:
        return match["comma"]
    return f"{match['comma']} {spell_short_year(year[-4:].lstrip(_APOSTROPHES))}"


def _read_iso(match: Match) -> str:
    return _spell_date(match["month"], match["day"], match["year"]) + (
        ", " if match["time"] else ""
    )


def _read_numeric(match: Match) -> str | None:
    """Read 01/07/98: the month stands first, unless it cannot be one, or dots separate."""
    first, second = match["first"], match["second"]
    month, day = (second, first) if match["separator"] == "." else (first, second)
    if int(month) > 12:
        month, day = day, month
    if not (1 <= int(month) <= 12 and 1 <= int(day) <= 31):
        return None
    if match["separator"] == "." and len(match["year"]) == 2 and len(first) < 2:
        return None
    return _spell_date(month, day, match["year"])


def _spell_date(month: str, day: str, year: str) -> str:
    return f"{MONTHS[int(month) - 1]} {spell_ordinal(day)}, {_spell_year(year)}"


def _spell_year(year: str) -> str:
    return spell_short_year(year) if len(year) != 3 else spell_era_year(year)


def _read_year_month(match: Match) -> str:
    return f"{MONTHS[int(match['month']) - 1]} {spell_short_year(match['year'])}"


def _read_short(match: Match) -> str | None:
    """Read 3/15 as a date only after a word that says so: on, due, Monday."""
    if not 1 <= int(match["day"]) <= 31 or not _DATE_BEFORE.search(text_before(match)):
        return None
    return f"{MONTHS[int(match['month']) - 1]} {spell_ordinal(match['day'])}"


def _read_abbreviation(match: Match) -> str:
    return MONTHS[month_of(match["month"]) - 1] + _stop(match)


def _read_month_range(match: Match) -> str | None:
    """Read both months of Jan-Mar."""
    if match["last"] and not _MONTH_BEFORE.search(text_before(match)):
        return None
    return MONTHS[month_of(match["month"] or match["last"]) - 1] + _full_stop(match)


def _read_day_range(match: Match) -> str | None:
    """Read both days of mon-fri."""
    if match["last"] and not _DAY_BEFORE.search(text_before(match)):
        return None
    return DAYS[DAY_FORMS[(match["day"] or match["last"]).lower()]] + _full_stop(match)


def _read_weekday(match: Match) -> str | None:
    form = match["day"]
    if match["dot"] and form in ("Sat", "Sun", "Th", "Tu") and match["end"] != "":
        return None
    return DAYS[DAY_FORMS[form.lower()]] + _stop(match)


def _stop(match: Match) -> str:
    """Return the full stop of an abbreviation that ends the text."""
    return (
        f".{match['end']}" if match["end"] is not None and match.end() == len(match.string) else ""
    )


RULES = (
    Rule("date", _MONTH_FIRST, _read_month_first, FormStart.LETTER),
    Rule("date", _DAY_FIRST, _read_day_first, FormStart.DIGIT),
    Rule("date", _MONTH_YEAR, _read_month_year, FormStart.LETTER),
    Rule("date", _ISO, _read_iso, FormStart.DIGIT),
    Rule("date", _NUMERIC, _read_numeric, FormStart.DIGIT),
    Rule("date", _YEAR_MONTH, _read_year_month, FormStart.DIGIT),
    Rule("date", _MONTH_SLASH_YEAR, _read_year_month, FormStart.DIGIT),
    Rule("date", _SHORT, _read_short, FormStart.DIGIT),
    Rule("month", _MONTH_RANGE, _read_month_range, FormStart.LETTER),
    Rule("weekday", _DAY_RANGE, _read_day_range, FormStart.LETTER),
    Rule("month", _ABBREVIATION, _read_abbreviation, FormStart.LETTER),
    Rule("weekday", _WEEKDAY, _read_weekday, FormStart.LETTER),
)
