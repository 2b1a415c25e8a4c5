"""Fractions: 1/2, 2 3/4, ½, 1½, and pairs of numbers that are no fractions, such as 24/7."""

import re
import unicodedata
from fractions import Fraction

from sglang_omni.normalization.en.numbers import (
    BLANK,
    spell_integer,
    spell_number,
    spell_ordinal,
    text_before,
    to_plural,
)
from sglang_omni.normalization.rule import FormStart, Match, Rule

VULGAR = "¼½¾⅐-⅞"
SLASH = "[/\u2044\u2215]"
# A fraction within the forms of other rules, such as measures.
FRACTION = rf"(?:(?:\d{{1,9}}(?:{BLANK}|-))?\d{{1,9}}{SLASH}\d{{1,9}}|\d{{0,9}}{BLANK}?[{VULGAR}])"
# Spoken as two numbers.
PAIRS = frozenset({"24/7", "50/50", "9/11", "20/20", "80/20", "60/40", "70/30", "90/10", "7/11"})

_FRACTION = re.compile(rf"(?<![\w./])(?P<form>{FRACTION})(?:st|nd|rds?|ths?|s)?(?![\w/]|\.\d)")
# Many at once, so that a long run of them takes linear time.
_INNER = re.compile(rf"(?:[^\W\d_{VULGAR}]{{0,40}}+[{VULGAR}]){{1,100}}+")
_PAIR = re.compile(r"(?<![\w./])\d{1,2}/\d{1,2}(?![\w/]|\.\d)")
_SCORE = re.compile(
    rf"(?<![\w./])(?P<points>\d{{1,3}}(?:\.\d{{1,2}})?){BLANK}?/{BLANK}?"
    r"(?P<most>5|10|20|100)(?![\w/]|\.\d)"
)
_RATED = re.compile(
    r"(?<!\w)(?:it|scores?|scored|scoring|rates?|rated|rating|got|gets|solid|easily)"
    r"(?: of| at|:)?(?: an?)?\s$",
    re.IGNORECASE,
)
_PARTS = re.compile(rf"(?:(?P<whole>\d+)(?:{BLANK}|-))?(?P<above>\d+){SLASH}(?P<below>\d+)")
_FULL_MARKS = ("5", "10", "20", "100")
# Larger ones, as in 120/80, are said as two numbers.
_MAX_IMPROPER_DENOMINATOR = 20


def spell_fraction(form: str) -> str:
    """Read a fraction: 3/4 is "three quarters", 1½ "one and a half", 22/1 "twenty-two over one"."""
    whole, above, below = _split(form)
    if not whole:
        return _spell_proper(above, below)
    is_half = (above, below) == ("1", "2")
    return f"{spell_integer(whole)} and {'a half' if is_half else _spell_proper(above, below)}"


def is_below_one(form: str) -> bool:
    """Tell whether a fraction is less than one, as 3/4 is."""
    whole, above, below = _split(form)
    return not whole and int(above) < int(below)


def _split(form: str) -> tuple[str, str, str]:
    """Return the whole number, which may be missing, the numerator and the denominator."""
    parts = _PARTS.fullmatch(form)
    if parts is not None:
        return parts["whole"] or "", parts["above"], parts["below"]
    value = Fraction(unicodedata.numeric(form[-1])).limit_denominator(10)
    return form[:-1].strip(), str(value.numerator), str(value.denominator)


def _spell_proper(above: str, below: str) -> str:
    """Read a fraction without a whole number."""
    improper = int(above) > int(below) > _MAX_IMPROPER_DENOMINATOR
    if int(below) < 2 or improper:
        return f"{spell_integer(above)} over {spell_integer(below)}"
    if above == below and below in _FULL_MARKS:
        return f"{spell_integer(above)} out of {spell_integer(below)}"
    return f"{spell_integer(above)} {_name_part(below, is_plural=int(above) != 1)}"


def _name_part(below: str, *, is_plural: bool) -> str:
    names = {2: ("half", "halves"), 4: ("quarter", "quarters")}
    if int(below) in names:
        return names[int(below)][is_plural]
    part = spell_ordinal(below)
    return to_plural(part) if is_plural else part


def _read_fraction(match: Match) -> str:
    return spell_fraction(match["form"])


def _read_inner(match: Match) -> str:
    words = re.sub(f"[{VULGAR}]", lambda sign: f" {spell_fraction(sign[0])} ", match[0])
    return " ".join(words.split())


def _read_pair(match: Match) -> str | None:
    """Read 24/7 as "twenty-four seven"."""
    if match[0] not in PAIRS:
        return None
    first, second = match[0].split("/")
    return f"{spell_integer(first)} {spell_integer(second)}"


def _read_score(match: Match) -> str | None:
    """Read "9.5/10" and "gave it 8/10" as "eight out of ten"."""
    points = match["points"]
    if "." not in points and not _RATED.search(text_before(match)):
        return None
    return f"{spell_number(points)} out of {spell_integer(match['most'])}"


RULES = (
    Rule("score", _SCORE, _read_score, FormStart.DIGIT),
    Rule("pair", _PAIR, _read_pair, FormStart.DIGIT),
    # ½ is a letter among the tokens.
    Rule("fraction", _FRACTION, _read_fraction, FormStart.DIGIT | FormStart.LETTER),
)
# Last of all: within a word, where no reading is better than another.
LATE_RULES = (Rule("fraction", _INNER, _read_inner, FormStart.LETTER),)
