"""What stands between two quantities: ranges, scores and ratios: 5-12, 3-2, 16:9, 1920x1080."""

import re

from sglang_omni.normalization.en.cardinals import SCALE_WORDS, SUFFIXES
from sglang_omni.normalization.en.months import DAY_FORMS, DAYS, MONTH_FORMS
from sglang_omni.normalization.en.numbers import (
    BLANK,
    NUMBER,
    spell_number,
    spell_pairs,
    text_before,
)
from sglang_omni.normalization.en.units import UNITS
from sglang_omni.normalization.rule import FormStart, Match, Rule

_DASH = r"[-\u2010-\u2015\u2212~\uff5e]"
_NAMES = "|".join((*MONTH_FORMS, *DAY_FORMS, *(day.lower() for day in DAYS), "noon", "midnight"))
# A chain such as 1-413-te is no range.
_NUMBER = (
    r"(?:US|HK|[ACS])?[$€£¥]?\u2212?\.?\d[\d,.:/]{0,20}+(?!-\d|(?:-\w{1,2}(?!\w)){2})"
    r"|(?<!-)-\d|['\u2019]\d0s"
)
_TO = re.compile(
    rf"{BLANK}?{_DASH}{BLANK}?"
    rf"(?={_NUMBER}|[QH][1-4]\b|(?:present|today|now)\b|(?i:{_NAMES})\b)"
)
_MARK = (
    r"(?:st|nd|rd|th|['\u2019]?s|%|°[CF]?|[℃℉‰\"\u2033]"
    rf"|(?P<unit>{BLANK}?[A-Za-z\u00b5]{{1,5}}[²³]?))"
)
_HALF_OR_SCALE = rf"(?:[ap]\.?m\.?|AM|PM|{'|'.join(SCALE_WORDS)})"
_BEFORE = re.compile(
    rf"(?:(?:(?<![\w.-])|(?<=[\s(][-\u2212]))[$€£¥]?[\d.,:/]{{0,20}}\d{_MARK}?"
    rf"|(?<!\w)[QH][1-4]|(?<!\w)(?i:{_NAMES})\.?)(?:{BLANK}?{_HALF_OR_SCALE})?$"
)
_WORDS_AFTER_NUMBERS = frozenset({*MONTH_FORMS, "am", "pm", *SUFFIXES})
_CROSS = re.compile(
    rf"(?<![\w.,])(?P<first>{NUMBER})[xX\u00d7](?P<second>{NUMBER})"
    rf"(?:[xX\u00d7](?P<third>{NUMBER}))?(?!\w|\.\d)"
)
_BY = re.compile(rf"{BLANK}?[x\u00d7]{BLANK}?(?=\d)")
_LENGTH_BEFORE = re.compile(r"\d ?(?:mm|cm|m|km|in|ft|px|yd)$|\d[\"″'\u2032]$")
_RATIO = re.compile(
    r"(?<![\w.,:/])(?P<first>\d{1,6}(?:\.\d{1,3})?):"
    r"(?P<second>\d{1,6}(?:\.\d{1,3})?)(?![\w:/]|[.,]\d)"
)
# The books of the Bible whose chapters are cited most often, and those of other scriptures.
_BOOK_BEFORE = re.compile(
    r"(?<!\w)(?:Genesis|Exodus|Leviticus|Numbers|Deuteronomy|Joshua|Job|Psalms?|Proverbs|Isaiah"
    r"|Jeremiah|Ezekiel|Daniel|Matthew|Mark|Luke|John|Acts|Romans|Corinthians|Galatians|Ephesians"
    r"|Philippians|Colossians|Timothy|Hebrews|James|Peter|Revelation|Quran|Surah)\.?\s$"
)


def _read_to(match: Match) -> str | None:
    """Read a dash between two quantities as "to"."""
    before = _BEFORE.search(text_before(match))
    if before is None:
        return None
    unit = (before["unit"] or "").strip()
    is_range = not unit or unit in UNITS or unit.lower() in _WORDS_AFTER_NUMBERS
    return " to " if is_range else None


def _read_cross(match: Match) -> str:
    """Read 1920x1080 as "nineteen twenty by ten eighty"."""
    parts = [match["first"], match["second"], match["third"]]
    return " by ".join(_spell_side(part) for part in parts if part)


def _spell_side(number: str) -> str:
    is_pair = len(number) in (3, 4) and number[-2:] >= "10" and number.isdigit()
    return spell_pairs(number) if is_pair else spell_number(number)


def _read_by(match: Match) -> str | None:
    return " by " if _LENGTH_BEFORE.search(text_before(match)) else None


def _read_ratio(match: Match) -> str:
    """Read 16:9 as "sixteen to nine", but Psalm 23:4 as "twenty-three four"."""
    is_verse = _BOOK_BEFORE.search(text_before(match)) is not None
    between = " " if is_verse else " to "
    return f"{spell_number(match['first'])}{between}{spell_number(match['second'])}"


RULES = (
    Rule("range", _TO, _read_to, FormStart.SIGN),
    Rule("dimensions", _CROSS, _read_cross, FormStart.DIGIT),
    Rule("dimensions", _BY, _read_by, FormStart.SIGN | FormStart.LETTER),
    Rule("ratio", _RATIO, _read_ratio, FormStart.DIGIT),
)
