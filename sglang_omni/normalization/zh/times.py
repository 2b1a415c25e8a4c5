"""Times of day and durations: 12:05, 3:30pm, 9点05分, 9:00-17:30, 用时1:02:36."""

from sglang_omni.normalization.rule import FormStart, Match, Rule
from sglang_omni.normalization.zh.numbers import spell_cardinal, spell_clock_number, spell_count
from sglang_omni.normalization.zh.patterns import form, text_before

_HALF = r"\s?(?P<half>[AaPp]\.?\s?[Mm](?:\.(?!\s?\Z))?)(?!\w)"
_CLOCK = form(
    r"(?:(?<![\w:.,/])|(?<=\dT))(?P<hour>2[0-4]|[01]?\d)[:：](?P<minute>[0-5]\d)"
    rf"(?:[:：](?P<second>[0-5]\d)(?:\.(?P<fraction>\d{{1,6}}))?)?(?:{_HALF})?(?![\d:]|\.\d)"
    r"(?:Z(?!\w))?"
)
_SHORT_CLOCK = form(
    rf"(?<![\w:.,/])(?P<hour>1[0-2]|[1-9]):(?P<minute>[0-5]?\d)(?::(?P<second>[0-5]?\d))?"
    rf"(?P<fraction>){_HALF}"
)
_HOUR_OF_HALF = form(rf"(?<![\w:.,/])(?P<hour>1[0-2]|0?[1-9]){_HALF}")
# 9点05分: the hour and the minute, while the signs stay as they are.
_HOUR_MARK = form(
    r"(?<![\w.])(?P<hour>2[0-4]|[01]?\d)(?P<mark>[点时])(?P<minute>[0-5]\d)(?![\d.%])"
)
_MINUTE_SECOND = form(r"(?<![\w.])(?P<minute>\d{1,3})(?P<mark>分|分钟)(?P<second>0\d)(?=秒)")
_MARKED_HALF = form(
    r"(?<![\w.])(?P<hour>2[0-4]|[01]?\d)点(?P<more>差?\s?\d{1,2}[分刻](?:\d{1,2}秒)?|半|整)?"
    + _HALF
)
_DURATION = form(
    r"(?<![\w.])(?:(?P<hours>\d{1,4})h)?(?:(?P<minutes>\d{1,4})(?:min|m))?(?:(?P<seconds>\d{1,4})s)?"
    r"(?![A-Za-z0-9])"
)
_NUMBER = form(r"\d{1,2}")
_LENGTH_BEFORE = form(
    r"(?:用时|耗时|历时|时长|全长|成绩|计时|片长|持续|净胜?时间)[为是约：: ]{0,2}\Z"
)
_HALF_BEFORE = form(r"(?:上午|下午|早上|晚上|中午|凌晨|早晨|傍晚|清晨|夜里)\s?\Z")


def _spell_hour(hour: str) -> str:
    """Spell the hour: 2 is 两, but 22 is 二十二."""
    return spell_count(hour)


def _half_words(match: Match) -> str:
    """Return 上午 or 下午 unless the text has said it."""
    if match["half"] is None or _HALF_BEFORE.search(text_before(match, 6)):
        return ""
    return "上午" if match["half"][0] in "aA" else "下午"


def _spell_minute(minute: str, second: str | None) -> str:
    if int(minute) == 0 and second is None:
        return ""
    return f"{spell_clock_number(minute)}分"


def _spell_second(match: Match) -> str:
    if match["second"] is None:
        return ""
    fraction = match["fraction"]
    words = spell_clock_number(match["second"])
    return f"{words}点{''.join(map(spell_cardinal, fraction))}秒" if fraction else f"{words}秒"


def _read_clock(match: Match) -> str:
    """Read 8:05:09 as 八点零五分零九秒, or as 八小时 after a word such as 用时."""
    if match["second"] is not None and _LENGTH_BEFORE.search(text_before(match, 10)):
        hour = f"{spell_count(match['hour'])}小时"
    else:
        hour = f"{_half_words(match)}{_spell_hour(match['hour'])}点"
    return hour + _spell_minute(match["minute"], match["second"]) + _spell_second(match)


def _read_hour_of_half(match: Match) -> str:
    return f"{_half_words(match)}{_spell_hour(match['hour'])}点"


def _read_hour_mark(match: Match) -> str:
    minute = spell_clock_number(match["minute"])
    return f"{_spell_hour(match['hour'])}{match['mark']}{minute}"


def _read_minute_second(match: Match) -> str:
    second = spell_clock_number(match["second"])
    return f"{spell_count(match['minute'])}{match['mark']}{second}"


def _read_marked_half(match: Match) -> str:
    """Read 5点差4分am as 上午五点差四分."""
    more = _NUMBER.sub(lambda number: spell_cardinal(number[0]), match["more"] or "")
    return f"{_half_words(match)}{_spell_hour(match['hour'])}点{more}"


def _read_duration(match: Match) -> str | None:
    """Read 3h20min as 三小时二十分钟; a single unit is a measure."""
    parts = ((match["hours"], "小时"), (match["minutes"], "分钟"), (match["seconds"], "秒"))
    words = [spell_count(number) + unit for number, unit in parts if number]
    return "".join(words) if len(words) > 1 else None


RULES = (
    Rule("time", _DURATION, _read_duration, FormStart.DIGIT),
    Rule("time", _CLOCK, _read_clock, FormStart.DIGIT),
    Rule("time", _SHORT_CLOCK, _read_clock, FormStart.DIGIT),
    Rule("time", _HOUR_OF_HALF, _read_hour_of_half, FormStart.DIGIT),
    Rule("time", _MARKED_HALF, _read_marked_half, FormStart.DIGIT),
    Rule("time", _HOUR_MARK, _read_hour_mark, FormStart.DIGIT),
    Rule("time", _MINUTE_SECOND, _read_minute_second, FormStart.DIGIT),
)
