"""Times of day and durations: 6:30am, 14:30, 9 p.m. EST, 1:02:03, 2h 15m."""

import re

from sglang_omni.normalization.en.numbers import (
    BLANK,
    DIGITS,
    SENTENCE_END,
    spell_digits,
    spell_integer,
    spell_two_digits,
    text_before,
)
from sglang_omni.normalization.rule import FormStart, Match, Rule

ZONES = (
    "EST", "EDT", "ET", "CST", "CDT", "CT", "MST", "MDT", "MT", "PST", "PDT", "PT", "AKST",
    "HST", "GMT", "UTC", "BST", "CET", "CEST", "EET", "EEST", "WET", "IST", "JST", "KST",
    "AEST", "AEDT", "ACST", "AWST", "NZST", "NZDT", "SGT", "HKT", "MSK",
)  # fmt: skip
# In small letters only those that are no words.
_SMALL_ZONES = "|".join(
    zone.lower() for zone in ZONES if len(zone) > 2 and zone not in ("WET", "MSK")
)
_HALF = r"(?P<half>[aApP])(?:\.?[mM](?![^\W_])\.?|\.[mM]\.?)"
_ZONE = (
    rf"(?:{BLANK}?(?P<zone>{'|'.join(ZONES)}|{_SMALL_ZONES}|(?<=\d)Z|(?:[ecmpECMP]\.[sdSD]\.[tT]))"
    r"(?![^\W_]|[+\-\u2212]\d)(?P<zone_dot>\.(?=\s+[a-z]))?)?"
)
_BEGIN = r"(?:(?<![\w.,:/$€£¥])|(?<=\dT))"
_DASH = rf"{BLANK}?[-\u2010-\u2015~]{BLANK}?"
_CLOCK = re.compile(
    rf"{_BEGIN}(?P<hour>[01]?\d|2[0-4]):(?P<minute>[0-5]\d)(?!\d|:\d|\.\d)"
    rf"(?:{BLANK}?{_HALF})?{_ZONE}"
    rf"(?P<unit>{BLANK}?(?:hrs?|hours|h)(?!\w))?(?!\w)(?P<range>(?={_DASH}\d))?"
    rf"(?P<exact>(?={BLANK}(?:noon|midnight|o['\u2019]clock)))?"
)
_TIME_BEFORE = re.compile(rf"\d:\d\d{_DASH}$")
_DOTTED = re.compile(
    rf"{_BEGIN}(?P<hour>1[0-2]|0?[1-9])\.(?P<minute>[0-5]\d){BLANK}?{_HALF}{_ZONE}(?!\w)"
)
_HOUR = re.compile(
    rf"{_BEGIN}(?P<hour>1[0-2]|0?[1-9])(?:{_DASH}(?P<last>1[0-2]|0?[1-9]))?"
    rf"{BLANK}?{_HALF}{_ZONE}(?!\w)"
)
_SECONDS = re.compile(
    rf"{_BEGIN}(?P<hour>\d{{1,3}}):(?P<minute>[0-5]\d):(?P<second>[0-5]\d)(?P<part>\.\d{{1,9}})?"
    rf"(?!:?\d)(?:{BLANK}?{_HALF})?{_ZONE}(?!\w)"
)
_OFFSET = re.compile(
    r"(?<!\w)(?P<zone>GMT|UTC)(?P<sign>[+\-\u2212])(?P<hour>\d{1,2})(?::?(?P<minute>\d\d))?(?!\w)"
)
_MILITARY = re.compile(
    rf"{_BEGIN}(?P<hour>[01]\d|2[0-4])(?P<minute>[0-5]\d)(?=(?:{BLANK}?(?:hrs|hours|h)\b))"
)
_FRENCH = re.compile(rf"{_BEGIN}(?P<hour>[01]?\d|2[0-3])[hH](?P<minute>[0-5]\d)(?!\w)")
_PART = r"\d{1,4}(?:\.\d{1,3})?"
_DURATION = re.compile(
    rf"(?<![\w.,])(?:(?P<days>{_PART}){BLANK}?(?:days?|d){BLANK}?)?"
    rf"(?:(?P<hours>{_PART}){BLANK}?(?:hours?|hrs?|h){BLANK}?)?"
    rf"(?:(?P<minutes>{_PART}){BLANK}?(?:minutes?|mins?|m|['\u2032]){BLANK}?)?"
    rf"(?:(?P<seconds>{_PART}){BLANK}?(?:seconds?|secs?|s))?(?<!{BLANK})(?!\w)"
)


def _read_clock(match: Match) -> str:
    """Read 6:30am as "six thirty AM", 14:05 "fourteen oh five", 3:00 "three o'clock"."""
    hour, minute = spell_integer(match["hour"]), match["minute"]
    words = f"{hour} {spell_two_digits(minute)}" if minute != "00" else _spell_sharp(match)
    return _with_half(match, f"{words} hours" if match.groupdict().get("unit") else words)


def _spell_sharp(match: Match) -> str:
    """Read a full hour: "three", with "o'clock" or "hundred" where nothing else tells the time."""
    hour, groups = spell_integer(match["hour"]), match.groupdict()
    if match["half"] or groups.get("exact") is not None:
        return hour
    if int(match["hour"]) > 12 or groups.get("unit"):
        return f"{hour} hundred"
    is_range = groups.get("range") is not None or _TIME_BEFORE.search(text_before(match))
    return hour if is_range else f"{hour} o'clock"


def _read_hour(match: Match) -> str:
    last = f" to {spell_integer(match['last'])}" if match["last"] else ""
    return _with_half(match, spell_integer(match["hour"]) + last)


def _with_half(match: Match, words: str) -> str:
    """Add AM or PM and the time zone, and the full stop of a sentence that ends with them."""
    half = f" {match['half'].upper()}M" if match["half"] else ""
    zone = match["zone"]
    zone_words = f" {zone.replace('.', '').upper()}".replace(" Z", " UTC") if zone else ""
    is_dotted = match[0].endswith(".") and not match["zone_dot"]
    ends = is_dotted and SENTENCE_END.match(match.string, match.end())
    return f"{words}{half}{zone_words}{'.' if ends else ''}"


def _read_seconds(match: Match) -> str:
    """Read 14:10:30 as "fourteen hours ten minutes and thirty seconds"."""
    seconds = _count(match["second"].lstrip("0") or "0", "second", match["part"] or "")
    hours, minutes = _count(match["hour"], "hour"), _count(match["minute"], "minute")
    return _with_half(match, f"{hours} {minutes} and {seconds}")


def _count(digits: str, name: str, part: str = "") -> str:
    decimals = f" point {spell_digits(part[1:])}" if part else ""
    is_one = int(digits) == 1 and not part
    return f"{spell_integer(digits)}{decimals} {name if is_one else name + 's'}"


def _read_offset(match: Match) -> str:
    sign = "plus" if match["sign"] == "+" else "minus"
    minute = f" {spell_integer(match['minute'])}" if int(match["minute"] or 0) else ""
    return f"{match['zone']} {sign} {spell_integer(match['hour'])}{minute}"


def _read_military(match: Match) -> str:
    """Read 0930 hours as "oh nine thirty hours"."""
    hour, minute = match["hour"], match["minute"]
    first = f"oh {DIGITS[int(hour)]}" if hour[0] == "0" else spell_integer(hour)
    return f"{first} {'hundred' if minute == '00' else spell_two_digits(minute)}"


def _read_french(match: Match) -> str:
    return f"{spell_integer(match['hour'])} {spell_two_digits(match['minute'])}"


def _read_duration(match: Match) -> str | None:
    """Read 2h 15m as "two hours and fifteen minutes"; a single part is a measure."""
    parts = [
        _count(_integer(match[name]), name[:-1], match[name][len(_integer(match[name])) :])
        for name in ("days", "hours", "minutes", "seconds")
        if match[name]
    ]
    if len(parts) < 2:
        return None
    return f"{' '.join(parts[:-1])} and {parts[-1]}"


def _integer(number: str) -> str:
    return number.partition(".")[0]


RULES = (
    Rule("time", _SECONDS, _read_seconds, FormStart.DIGIT),
    Rule("time", _CLOCK, _read_clock, FormStart.DIGIT),
    Rule("time", _DOTTED, _read_clock, FormStart.DIGIT),
    Rule("time", _HOUR, _read_hour, FormStart.DIGIT),
    Rule("time", _OFFSET, _read_offset, FormStart.LETTER),
    Rule("time", _MILITARY, _read_military, FormStart.DIGIT),
    Rule("time", _FRENCH, _read_french, FormStart.DIGIT),
    Rule("duration", _DURATION, _read_duration, FormStart.DIGIT),
)
