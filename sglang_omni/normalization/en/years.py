"""Years, decades, eras and quarters: 1984, 1914-18, the 90s, 44 BC, Q3 2024."""

import re

from sglang_omni.normalization.en.numbers import (
    BLANK,
    SENTENCE_END,
    spell_integer,
    spell_ordinal,
    spell_two_digits,
    spell_year,
    text_before,
    to_plural,
)
from sglang_omni.normalization.rule import FormStart, Match, Rule

YEAR = r"(?:1\d|20|21)\d\d"
_DASH = r"[-\u2010-\u2015\u2212~\uff5e]"
_ERA = r"(?:AD|BCE?|CE|A\.D\.?|B\.C\.E\.?|B\.C\.?|C\.E\.?)(?![A-Za-z])"
_ERA_AFTER = re.compile(rf"(?<![\w.,])(?P<year>\d{{1,3}},\d{{3}}|\d{{1,5}}){BLANK}?(?P<era>{_ERA})")
_ERA_BEFORE = re.compile(rf"(?<!\w)(?P<era>A\.?D\.?){BLANK}?(?P<year>\d{{1,4}})(?![\w]|[.,]\d)")
_YEAR = re.compile(
    r"(?<![\w.,$€£¥#/])(?P<year>\d{4})(?P<possessive>['\u2019]s\b)?(?![^\W_]|[.,/:]\d|%)"
)
_CIRCA = re.compile(rf"(?<!\w)(?:ca?\.){BLANK}?(?=\d{{3,4}}\b)")
_SEASON = re.compile(rf"(?<![\w.,/-])(?P<first>{YEAR})/(?P<second>(?:\d\d)?\d\d)(?![\w/-]|\.\d)")
_SHORT = re.compile(r"(?<![\w'\u2019])['\u2018\u2019](?P<year>\d\d)(?![\w'\u2019]|[.,:]\d)")
_DECADE = re.compile(
    r"(?<![\w.,$€£])(?P<mark>['\u2018\u2019])?(?:(?P<century>1\d|20)(?P<long>\d0)"
    r"|(?P<short>[1-9]0|(?<=['\u2018\u2019])00))['\u2019]?s(?!\w)"
)
_QUARTER = re.compile(
    rf"(?<!\w)(?:(?P<kind>[QH])(?P<number>[1-4])|(?P<number2>[1-4])(?P<kind2>[QH]))"
    rf"(?:{BLANK}?(?:of{BLANK})?(?:FY)?['\u2019]?(?P<year>\d{{4}}|\d\d))?(?!\w|[.,]\d)"
)
_FISCAL = re.compile(rf"(?<!\w)FY{BLANK}?['\u2019]?(?P<year>\d{{4}}|\d\d)(?!\w)")

# After these words, four digits are a year ...
_STRONG = re.compile(
    r"(?<!\w)(?:in|since|year|circa|ca?\.|early|mid|late|spring|summer|autumn|fall|winter|until"
    r"|till|by|before|during|born|copyright|©|vintage|anno|christmas"
    r"|january|february|march|april|may|june|july|august|september|october|november|december"
    r"|founded|established|est\.|(?:class|year|spring|summer|autumn|fall|winter|revolution) of"
    r"|(?:back|dating) to)[ \t\u00a0-]\(?$",
    re.IGNORECASE,
)
# ... and after these ones if it is one of the last centuries.
_WEAK = re.compile(
    r"(?<!\w)(?:and|to|of|after|around|about|from|between|through|the)[ \t\u00a0]\(?$",
    re.IGNORECASE,
)
_YEAR_BEFORE = re.compile(rf"(?<!\d){YEAR}{BLANK}?(?:{_DASH}|to|and|&){BLANK}?$")
_YEAR_AFTER = re.compile(
    rf"{BLANK}?(?:{_DASH}|to(?={BLANK}\d{{4}})){BLANK}?(?P<end>\d{{4}}|\d\d)(?![\w-]|[.,]\d)"
)
_PAUSE_AFTER = re.compile(r"\s*(?:\Z|[.)\]\"”!?;:,](?!\d))")
_PAUSE_BEFORE = re.compile(r"(?:\A|[.(\[\"“!?;:,]\s?|\n)\Z")
_SECONDS_BEFORE = re.compile(
    r"(?:(?<!\w)(?:for|after|within|about|every|wait(?:s|ed|ing)?|takes?|took|lasts?|lasted|only"
    r"|under|over|than|first|last|next)\s|[~≈<>=]\s?)$"
)


def spell_short_year(digits: str) -> str:
    """Read a year of two or four digits: 98 is "ninety-eight", 05 "oh five"."""
    return spell_two_digits(digits) if len(digits) == 2 else spell_year(digits)


def _read_year(match: Match) -> str | None:
    """Read four digits as a year where the words or signs around say that they are one."""
    digits = match["year"]
    if not _is_year(match, digits):
        return None
    return spell_year(digits) + ("'s" if match["possessive"] else "")


def _is_year(match: Match, digits: str) -> bool:
    year, before = int(digits), text_before(match)
    if 1900 <= year < 2100:
        return True
    if not 1000 <= year < 3000:
        return False
    if _YEAR_BEFORE.search(before) or _starts_years(match, digits):
        return True
    if _STRONG.search(before):
        return True
    if _WEAK.search(before):
        return 1400 <= year < 1900
    is_alone = _PAUSE_BEFORE.search(before) and _PAUSE_AFTER.match(match.string, match.end())
    return bool(is_alone) and year >= 1010


def _starts_years(match: Match, digits: str) -> bool:
    """Tell whether a later year follows, as in 1861-1865 and 1861-65."""
    after = _YEAR_AFTER.match(match.string, match.end())
    if after is None:
        return False
    end = after["end"]
    return int(end) > int(digits[-len(end) :]) and int(end) < 2100


def _read_era(match: Match) -> str:
    """Read 44 B.C. as "forty-four BC", with the full stop of a sentence that ends with it."""
    era = match["era"]
    ends = era.endswith(".") and SENTENCE_END.match(match.string, match.end())
    return f"{spell_era_year(match['year'])} {era.replace('.', '')}{'.' if ends else ''}"


def spell_era_year(form: str) -> str:
    """Read a year with an era, which may have three digits: 340 is "three forty"."""
    digits = form.replace(",", "")
    if len(digits) == 3 and digits[1] != "0":
        return f"{spell_integer(digits[0])} {spell_integer(digits[1:])}"
    return spell_year(digits)


def _read_era_before(match: Match) -> str:
    return f"{match['era'].replace('.', '')} {spell_era_year(match['year'])}"


def _read_circa(_: Match) -> str:
    return "circa "


def _read_season(match: Match) -> str | None:
    """Read 2023/24 as "twenty twenty-three twenty-four"."""
    first, second = match["first"], match["second"]
    if str(int(first) + 1)[-len(second) :] != second:
        return None
    return f"{spell_year(first)} {spell_short_year(second)}"


def _read_short(match: Match) -> str:
    return spell_short_year(match["year"])


def _read_decade(match: Match) -> str | None:
    """Read 1990s as "nineteen nineties", '60s as "sixties"; 30s may be seconds."""
    if match["short"]:
        is_time = match["short"] == "10" or _SECONDS_BEFORE.search(text_before(match))
        if is_time and not match["mark"] and "'" not in match[0] and "\u2019" not in match[0]:
            return None
        return _spell_decade(match["short"])
    century, decade = match["century"], match["long"]
    if decade == "00":
        return f"{spell_integer(century)} hundreds" if century != "20" else _spell_decade(decade)
    return f"{spell_integer(century)} {_spell_decade(decade)}"


def _spell_decade(decade: str) -> str:
    return "two thousands" if decade == "00" else to_plural(spell_integer(decade))


def _read_quarter(match: Match) -> str:
    """Read Q3 2024 as "the third quarter of twenty twenty-four", and H1 as a half."""
    kind, number = match["kind"] or match["kind2"], match["number"] or match["number2"]
    if not match["year"]:
        return f"{kind} {spell_integer(number)}"
    name = "quarter" if kind == "Q" else "half"
    article = "" if re.search(r"\bthe\s$", text_before(match), re.IGNORECASE) else "the "
    return f"{article}{spell_ordinal(number)} {name} of {spell_short_year(match['year'])}"


def _read_fiscal(match: Match) -> str:
    return f"fiscal year {spell_short_year(match['year'])}"


RULES = (
    Rule("era", _ERA_AFTER, _read_era, FormStart.DIGIT),
    Rule("era", _ERA_BEFORE, _read_era_before, FormStart.LETTER),
    Rule("year", _CIRCA, _read_circa, FormStart.LETTER),
    Rule("year", _SEASON, _read_season, FormStart.DIGIT),
    Rule("decade", _DECADE, _read_decade, FormStart.DIGIT | FormStart.SIGN),
    Rule("year", _SHORT, _read_short, FormStart.SIGN),
    Rule("quarter", _QUARTER, _read_quarter, FormStart.DIGIT | FormStart.LETTER),
    Rule("fiscal year", _FISCAL, _read_fiscal, FormStart.LETTER),
)
# After measures and times: 1500 m is no year.
LATE_RULES = (Rule("year", _YEAR, _read_year, FormStart.DIGIT),)
