"""Years, decades and eras: 1984年, 05年, 90年代, 80后, 公元前202年, 2334bc."""

from sglang_omni.normalization.rule import FormStart, Match, Rule, replace_with
from sglang_omni.normalization.zh.numbers import spell_cardinal, spell_digits
from sglang_omni.normalization.zh.patterns import DASH, form, text_before

# A span of years, not a year: 60年来, 工作了80年, 2000年前.
_SPAN_AFTER = "(?!前|来|以来|历史|间|内|里|多|以上|以内|左右|如一日|之久|之后|之前|期|时间|文明|后)"
_SPAN_BEFORE = form(
    r"[了过近约达长满有整超需用经几数\d]\Z|(?:大概|历时|时隔|工作|坚持|持续|不到)\Z"
)
# What stands in front of a year of two digits: 于98年, 自12年.
_YEAR_BEFORE = form(r"(?:于|自从|自|截至|截止|出生|毕业|早在)\Z|(?:公元前?|纪元)\s?\Z")
# Years of three digits stand in brackets or in a range: 唐朝（618年-907年）.
_OLD_YEARS_AFTER = form(r"年[-\u2013—~至到]\s?\d")
_OLD_YEARS_BEFORE = form(r"(?:[（(]|年[-\u2013—~至到])\Z")
_CLAUSE_START = form(r"(?:\A|.*[\s，。！？；：、,.!?;:（(“\"])\Z")

_FULL_YEAR = form(
    r"(?<![\d.,])(?:(?:19|20|21)\d\d(?=年(?!多|之久|文明|历史|的历史))"
    rf"|(?:1\d\d\d|0\d\d\d)(?=年{_SPAN_AFTER}))"
)
_OLD_YEAR = form(r"(?<=公元前|公元\s|纪元前|西历\s)\d{1,4}(?=\s?年)|(?<=公元|纪元)\d{1,4}(?=\s?年)")
_SHORT_YEAR = form(rf"(?<![\d.,])\d{{2,3}}(?=年{_SPAN_AFTER}(?P<month>\d{{1,2}}月)?)")
_YEARS = form(
    rf"(?<![\d.,])(?P<first>(?:1[5-9]|20)\d\d)(?P<mark>年?){DASH}(?P<last>(?:1[5-9]|20|21)\d\d)"
    r"(?=年|[^\w元人个\u4e00-\u9fff%℃]|\Z)"
)
_SHORT_YEARS = form(rf"(?<![\d.,])(?P<first>\d\d)年?{DASH}(?P<last>\d\d)(?=年代)")
_DECADE = form(r"(?<![\d.,])(?P<century>(?:1[5-9]|20))?(?P<decade>\d0)(?:'?s)?(?=年代)")
_GENERATION = form(r"(?<![\d.,])\d[05](?=(?:[、/和与及]\d[05]){0,3}后(?![天面来年期续卫备退]))")
_GENERATIONS = form(r"(?<=\d[05])/(?=\d[05]后)")

_ERAS = {"bc": "公元前", "bce": "公元前", "ad": "公元", "ce": "公元"}
_ERA = r"\s?(?P<era>[Bb]\.?[Cc]\.?(?:[Ee]\.?)?|[Aa]\.?[Dd]\.?|CE)(?!\w)"
_YEAR_OF_ERA = form(rf"(?<![\w.,])(?P<year>\d{{1,4}})年?{_ERA}")
_DATE_OF_ERA = form(
    rf"(?<![\w.,])(?P<year>\d{{1,4}})年(?P<month>\d{{1,2}})月(?:(?P<day>\d{{1,2}})日)?{_ERA}"
)


def _read_digits(match: Match) -> str:
    return spell_digits(match[0])


def _read_old_year(match: Match) -> str:
    """Read the year of an era: people say 公元前二零二年, but 公元前十年."""
    return spell_digits(match[0]) if len(match[0]) > 2 else spell_cardinal(match[0])


def _read_short_year(match: Match) -> str | None:
    """Read 98年 as a year where it is no span of years."""
    year, before = match[0], text_before(match, 12)
    if year[0] == "0" or match["month"] or _YEAR_BEFORE.search(before):
        return spell_digits(year)
    if len(year) == 3:
        is_old = _OLD_YEARS_AFTER.match(match.string, match.end()) or _OLD_YEARS_BEFORE.search(
            before
        )
        return spell_digits(year) if is_old else None
    if _SPAN_BEFORE.search(before):
        return None
    is_alone = _CLAUSE_START.match(before) is not None
    is_year = year >= "80" or (year >= "40" and is_alone)
    return spell_digits(year) if is_year else None


def _read_years(match: Match) -> str | None:
    if match["first"] >= match["last"]:
        return None
    return f"{spell_digits(match['first'])}{match['mark']}到{spell_digits(match['last'])}"


def _spell_decade(decade: str) -> str:
    return spell_digits(decade) if decade == "00" else spell_cardinal(decade)


def _read_decade(match: Match) -> str:
    """Read 90年代 as 九十年代, 1990年代 as 一九九零年代."""
    century = match["century"]
    return spell_digits(century + match["decade"]) if century else _spell_decade(match["decade"])


def _read_decades(match: Match) -> str | None:
    first, last = match["first"], match["last"]
    return f"{_spell_decade(first)}到{_spell_decade(last)}" if first[1] == last[1] == "0" else None


def _read_year_of_era(match: Match) -> str:
    return f"{_era(match)}{spell_digits(match['year'])}年"


def _read_date_of_era(match: Match) -> str:
    words = f"{_era(match)}{spell_digits(match['year'])}年{spell_cardinal(match['month'])}月"
    return f"{words}{spell_cardinal(match['day'])}日" if match["day"] else words


def _era(match: Match) -> str:
    return _ERAS[match["era"].replace(".", "").lower()]


RULES = (
    Rule("date", _DATE_OF_ERA, _read_date_of_era, FormStart.DIGIT),
    Rule("date", _YEAR_OF_ERA, _read_year_of_era, FormStart.DIGIT),
    Rule("date", _YEARS, _read_years, FormStart.DIGIT),
    Rule("date", _SHORT_YEARS, _read_decades, FormStart.DIGIT),
    Rule("date", _DECADE, _read_decade, FormStart.DIGIT),
    Rule("date", _GENERATION, _read_digits, FormStart.DIGIT),
    Rule("date", _GENERATIONS, replace_with("、"), FormStart.SIGN),
    Rule("date", _OLD_YEAR, _read_old_year, FormStart.DIGIT),
    Rule("date", _FULL_YEAR, _read_digits, FormStart.DIGIT),
    Rule("date", _SHORT_YEAR, _read_short_year, FormStart.DIGIT),
)
