"""Spell out numbers in English text, as the reference does."""

import re
from collections.abc import Callable
from functools import cache
from typing import TYPE_CHECKING

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
# Possessive quantifiers, so that long runs of digits take linear time.
_NUMBER = r"\d++(?:\.\d++)?"
_THOUSANDS = re.compile(r"(?<=\d),(?=\d{3}(?!\d))")
_UNIT_NAMES = sorted(UNITS, key=len, reverse=True)
_UNIT = re.compile(rf"\b(-?{_NUMBER})\s*({'|'.join(_UNIT_NAMES)})\b", re.IGNORECASE)
_POUNDS = re.compile(rf"£(-?{_NUMBER})")
_DOLLARS = re.compile(rf"\$(-?{_NUMBER})")
_FRACTION = re.compile(r"(?<!\d)(\d++)/(\d++)")
_PERCENT = re.compile(rf"(?<!\d)(-?{_NUMBER})\s*%")
_ORDINAL = re.compile(r"\b(\d+)(?:st|nd|rd|th)\b", re.IGNORECASE)
_VERSION = re.compile(rf"\b([A-Za-z]++)-?({_NUMBER})\b")
_PLAIN = re.compile(rf"\b-?{_NUMBER}\b")


def spell_out_english(text: str) -> str:
    """Spell out numbers, units, money, fractions and ordinals of an English text.

    Every replacement is surrounded by blanks; runs of blanks are then collapsed. The order of the
    steps matters.
    """
    text = _THOUSANDS.sub("", text)
    for pattern, read in (
        (_UNIT, _read_unit),
        (_POUNDS, lambda m: f"{number_to_words(m[1])} pounds"),
        (_DOLLARS, _read_dollars),
        (_FRACTION, _read_fraction),
        (_PERCENT, lambda m: f"{number_to_words(m[1])} percent"),
        (_ORDINAL, lambda m: number_to_words(m[1], andword="and")),
        (_VERSION, lambda m: f"{m[1]} {number_to_words(m[2], andword='and')}"),
        (_PLAIN, lambda m: number_to_words(m[0])),
    ):
        text = pattern.sub(_pad_replacement(read), text)
    return re.sub(r"\s+", " ", text).strip()


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


def _read_fraction(match: Match) -> str:
    numerator, denominator = match[1], match[2]
    count = number_to_words(numerator, andword="and")
    if denominator == "2":
        return f"{count} {'half' if numerator == '1' else 'halves'}"
    if denominator == "4":
        return f"{count} {'quarter' if numerator == '1' else 'quarters'}"
    return f"{count} {_ordinal_to_words(denominator)}"


def _ordinal_to_words(digits: str) -> str:
    if len(digits) > MAX_NUMBER_DIGITS:
        return _digits_to_words(digits)
    return str(_load_inflect().ordinal(number_to_words(digits, andword="and")))
