"""Spell out numbers in English text."""

import re
from collections.abc import Callable
from functools import cache
from typing import TYPE_CHECKING

from sglang_omni.models.ming.text.rules import PRODUCT, Rules

if TYPE_CHECKING:
    import inflect

Match = re.Match[str]

# Longer numbers are read digit by digit; the library has no words for them.
MAX_NUMBER_DIGITS = 15

DIGITS = ("zero", "one", "two", "three", "four", "five", "six", "seven", "eight", "nine")
UNITS = {
    "ms": "milliseconds",
    "s": "seconds",
    "hz": "hertz",
    "khz": "kilohertz",
    "mhz": "megahertz",
    "ghz": "gigahertz",
    "kb": "kilobytes",
    "mb": "megabytes",
    "gb": "gigabytes",
    "tb": "terabytes",
    "bps": "bits per second",
    "kbps": "kilobits per second",
    "mbps": "megabits per second",
    "gbps": "gigabits per second",
    "cm": "centimeters",
    "km": "kilometers",
    "kg": "kilograms",
    "v": "volts",
    "a": "amperes",
    "w": "watts",
    "°c": "degrees celsius",
    "°f": "degrees fahrenheit",
}
# Letters before a dollar sign, and singular and plural of the currency.
DOLLARS = {
    "HK": ("Hong Kong dollar", "Hong Kong dollars"),
    "US": ("US dollar", "US dollars"),
    "A": ("Australian dollar", "Australian dollars"),
    "AU": ("Australian dollar", "Australian dollars"),
    "C": ("Canadian dollar", "Canadian dollars"),
    "CA": ("Canadian dollar", "Canadian dollars"),
    "NT": ("New Taiwan dollar", "New Taiwan dollars"),
    "S": ("Singapore dollar", "Singapore dollars"),
    "NZ": ("New Zealand dollar", "New Zealand dollars"),
    "R": ("Brazilian real", "Brazilian reais"),
    "MX": ("Mexican peso", "Mexican pesos"),
}
# Possessive quantifiers, so that long runs of digits take linear time.
_NUMBER = r"\d++(?:\.\d++)?"
_THOUSANDS = re.compile(r"(?<=\d),(?=\d{3}(?!\d))")
_UNIT_NAMES = sorted(UNITS, key=len, reverse=True)
_UNIT = re.compile(rf"\b(-?{_NUMBER})\s*({'|'.join(_UNIT_NAMES)})\b", re.IGNORECASE)
# Amperes only as a capital letter, and no unit at the start of abbreviations such as a.m.
_STRICT_NAMES = "|".join("(?-i:A)" if name == "a" else name for name in _UNIT_NAMES)
_STRICT_UNIT = re.compile(rf"\b(-?{_NUMBER})\s*({_STRICT_NAMES})\b(?!\.[A-Z]\b)", re.IGNORECASE)
_POUNDS = re.compile(rf"£(-?{_NUMBER})")
_DOLLARS = re.compile(rf"\$(-?{_NUMBER})")
_NAMED_DOLLARS = re.compile(
    rf"\b({'|'.join(DOLLARS)})\$({_NUMBER})(?: (hundred|thousand|million|billion|trillion)\b)?"
)
_YUAN = re.compile(rf"[¥￥]({_NUMBER})")
_FRACTION = re.compile(r"(?<!\d)(\d++)/(\d++)")
_PERCENT = re.compile(rf"(?<!\d)(-?{_NUMBER})\s*%")
_ORDINAL = re.compile(r"\b(\d+)(?:st|nd|rd|th)\b", re.IGNORECASE)
_VERSION = re.compile(rf"\b([A-Za-z]++)-?({_NUMBER})\b")
_PLAIN = re.compile(rf"\b-?{_NUMBER}\b")
_REMAINING = re.compile(rf" ?{_NUMBER} ?")

_DECADE = re.compile(r"\b(\d\d)([1-9]0)s\b")
_RANGE = re.compile(r"(?<![\w.-])(\d{1,3})-(\d{1,3})(?![\w-]|\.\d)")
_SIGN = re.compile(r"(?<![^\s(])[-−](?=\d)")
_HYPHEN = re.compile(r"(?<=\d)-(?=\d)")


def spell_out_english(text: str, rules: Rules = PRODUCT) -> str:
    """Spell out numbers, units, money, fractions and ordinals of an English text.

    Every replacement is surrounded by blanks; runs of blanks are then collapsed. The order of the
    steps is the reference's and matters.
    """
    text = _THOUSANDS.sub("", text)
    if rules.signs:
        text = _read_signs(text)
    if rules.units:
        text = _DECADE.sub(_pad_replacement(_read_decade), text)
    if rules.currencies:
        text = _YUAN.sub(
            _pad_replacement(_read_yuan),
            _NAMED_DOLLARS.sub(_pad_replacement(_read_named_dollars), text),
        )
    unit = _STRICT_UNIT if rules.units else _UNIT
    ordinal = _read_ordinal if rules.ordinals else _read_ordinal_as_cardinal
    for pattern, read in (
        (unit, _read_unit),
        (_POUNDS, lambda m: f"{number_to_words(m[1])} pounds"),
        (_DOLLARS, _read_dollars),
        (_FRACTION, _read_fraction),
        (_PERCENT, lambda m: f"{number_to_words(m[1])} percent"),
        (_ORDINAL, ordinal),
        (_VERSION, lambda m: f"{m[1]} {number_to_words(m[2], andword='and')}"),
        (_PLAIN, lambda m: number_to_words(m[0])),
    ):
        text = pattern.sub(_pad_replacement(read), text)
    return re.sub(r"\s+", " ", text).strip()


def spell_out_remaining_numbers(text: str) -> str:
    """Spell out numbers attached to letters (B2B), which the reference leaves to its grammar."""
    return _REMAINING.sub(lambda m: f" {number_to_words(m[0].strip())} ", text).strip()


def number_to_words(number: str, andword: str = "") -> str:
    """Spell out a decimal number, which may be negative; decimals digit by digit."""
    sign = "minus " if number.startswith("-") else ""
    integer, _, decimals = number.removeprefix("-").partition(".")
    spoken = sign + _integer_to_words(integer, andword)
    return f"{spoken} point {_digits_to_words(decimals)}" if decimals else spoken


def _integer_to_words(digits: str, andword: str) -> str:
    if len(digits) > MAX_NUMBER_DIGITS:
        return _digits_to_words(digits)
    return str(_load_inflect().number_to_words(str(int(digits)), andword=andword))


def _digits_to_words(digits: str) -> str:
    return " ".join(DIGITS[int(digit)] for digit in digits)


@cache
def _load_inflect() -> "inflect.engine":
    # Importing it takes two seconds, in which engines can start already.
    import inflect

    return inflect.engine()


def _pad_replacement(read: Callable[[Match], str]) -> Callable[[Match], str]:
    return lambda match: f" {read(match)} "


def _read_unit(match: Match) -> str:
    return f"{number_to_words(match[1])} {UNITS[match[2].lower()]}"


def _read_dollars(match: Match) -> str:
    return f"{number_to_words(match[1])} {'dollar' if match[1] == '1' else 'dollars'}"


def _read_named_dollars(match: Match) -> str:
    """Read HK$20 as twenty Hong Kong dollars."""
    singular, plural = DOLLARS[match[1]]
    count = f"{number_to_words(match[2])} {match[3] or ''}".strip()
    return f"{count} {singular if count == 'one' else plural}"


def _read_yuan(match: Match) -> str:
    return f"{number_to_words(match[1])} yuan"


def _read_fraction(match: Match) -> str:
    numerator, denominator = match[1], match[2]
    count = number_to_words(numerator, andword="and")
    if denominator == "2":
        return f"{count} {'half' if numerator == '1' else 'halves'}"
    if denominator == "4":
        return f"{count} {'quarter' if numerator == '1' else 'quarters'}"
    return f"{count} {_ordinal_to_words(denominator)}"


def _read_ordinal(match: Match) -> str:
    return _ordinal_to_words(match[1])


def _read_ordinal_as_cardinal(match: Match) -> str:
    return number_to_words(match[1], andword="and")


def _ordinal_to_words(digits: str) -> str:
    if len(digits) > MAX_NUMBER_DIGITS:
        return _digits_to_words(digits)
    return str(_load_inflect().ordinal(number_to_words(digits, andword="and")))


def _read_decade(match: Match) -> str:
    """Read 1990s as nineteen nineties."""
    return f"{number_to_words(match[1])} {_load_inflect().plural(number_to_words(match[2]))}"


def _read_signs(text: str) -> str:
    """Read a sign as a word and a range with "to"; other hyphens between digits are pauses."""
    text = _RANGE.sub(lambda m: f"{m[1]} to {m[2]}", text)
    return _HYPHEN.sub(" - ", _SIGN.sub("minus ", text))
