"""Numbers in English text, in words."""

import re
from collections.abc import Callable
from functools import cache
from typing import TYPE_CHECKING

from sglang_omni.models.ming.text.rules import PRODUCT, Rules

if TYPE_CHECKING:
    import inflect

Match = re.Match[str]

# A longer number is read digit by digit; the library has no words for it anyway.
LONGEST_NUMBER = 15

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
# The letters in front of a dollar sign, and one and several of what it then means.
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
# Possessive and never begun inside a number, so that long runs of digits take linear time.
_NUMBER = r"\d++(?:\.\d++)?"
_THOUSANDS = re.compile(r"(?<=\d),(?=\d{3}(?!\d))")
_UNIT_NAMES = sorted(UNITS, key=len, reverse=True)
_UNIT = re.compile(rf"\b(-?{_NUMBER})\s*({'|'.join(_UNIT_NAMES)})\b", re.IGNORECASE)
# Amperes only as a capital letter, and no unit where an abbreviation such as a.m. begins.
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
_LEFT_OVER = re.compile(rf" ?{_NUMBER} ?")

_DECADE = re.compile(r"\b(\d\d)([1-9]0)s\b")
_RANGE = re.compile(r"(?<![\w.-])(\d{1,3})-(\d{1,3})(?![\w-]|\.\d)")
_SIGN = re.compile(r"(?<![^\s(])[-−](?=\d)")
_HYPHEN = re.compile(r"(?<=\d)-(?=\d)")


def number_words(text: str, rules: Rules = PRODUCT) -> str:
    """Rewrite numbers, units, money, fractions and ordinals of an English text as words.

    Every replacement is set off by blanks; runs of blanks then become one. The order of the
    steps is the reference's and matters.
    """
    text = _THOUSANDS.sub("", text)
    if rules.signs:
        text = _read_signs(text)
    if rules.units:
        text = _DECADE.sub(_padded(_decade), text)
    if rules.currencies:
        text = _YUAN.sub(_padded(_yuan), _NAMED_DOLLARS.sub(_padded(_named_dollars), text))
    unit = _STRICT_UNIT if rules.units else _UNIT
    ordinal = _ordinal if rules.ordinals else _cardinal_ordinal
    for pattern, read in (
        (unit, _unit),
        (_POUNDS, lambda m: f"{words(m[1])} pounds"),
        (_DOLLARS, _dollars),
        (_FRACTION, _fraction),
        (_PERCENT, lambda m: f"{words(m[1])} percent"),
        (_ORDINAL, ordinal),
        (_VERSION, lambda m: f"{m[1]} {words(m[2], andword='and')}"),
        (_PLAIN, lambda m: words(m[0])),
    ):
        text = pattern.sub(_padded(read), text)
    return re.sub(r"\s+", " ", text).strip()


def left_over_numbers(text: str) -> str:
    """Words for numbers glued to letters (B2B), which the reference leaves to its grammar."""
    return _LEFT_OVER.sub(lambda m: f" {words(m[0].strip())} ", text).strip()


def words(number: str, andword: str = "") -> str:
    """A decimal number, perhaps negative, in words; decimals digit by digit."""
    sign = "minus " if number.startswith("-") else ""
    whole, _, decimals = number.removeprefix("-").partition(".")
    spoken = sign + _whole_words(whole, andword)
    return f"{spoken} point {_digit_words(decimals)}" if decimals else spoken


def _whole_words(digits: str, andword: str) -> str:
    if len(digits) > LONGEST_NUMBER:
        return _digit_words(digits)
    return str(_engine().number_to_words(str(int(digits)), andword=andword))


def _digit_words(digits: str) -> str:
    return " ".join(DIGITS[int(digit)] for digit in digits)


@cache
def _engine() -> "inflect.engine":
    # Its import checks its own types for two seconds, in which engines can start already.
    import inflect

    return inflect.engine()


def _padded(read: Callable[[Match], str]) -> Callable[[Match], str]:
    return lambda match: f" {read(match)} "


def _unit(match: Match) -> str:
    return f"{words(match[1])} {UNITS[match[2].lower()]}"


def _dollars(match: Match) -> str:
    return f"{words(match[1])} {'dollar' if match[1] == '1' else 'dollars'}"


def _named_dollars(match: Match) -> str:
    """HK$20: twenty Hong Kong dollars."""
    one, several = DOLLARS[match[1]]
    count = f"{words(match[2])} {match[3] or ''}".strip()
    return f"{count} {one if count == 'one' else several}"


def _yuan(match: Match) -> str:
    return f"{words(match[1])} yuan"


def _fraction(match: Match) -> str:
    above, below = match[1], match[2]
    count = words(above, andword="and")
    if below == "2":
        return f"{count} {'half' if above == '1' else 'halves'}"
    if below == "4":
        return f"{count} {'quarter' if above == '1' else 'quarters'}"
    return f"{count} {_ordinal_words(below)}"


def _ordinal(match: Match) -> str:
    return _ordinal_words(match[1])


def _cardinal_ordinal(match: Match) -> str:
    return words(match[1], andword="and")


def _ordinal_words(digits: str) -> str:
    if len(digits) > LONGEST_NUMBER:
        return _digit_words(digits)
    return str(_engine().ordinal(words(digits, andword="and")))


def _decade(match: Match) -> str:
    """1990s: nineteen nineties."""
    return f"{words(match[1])} {_engine().plural(words(match[2]))}"


def _read_signs(text: str) -> str:
    """A sign is read as a word, a range with "to"; any other hyphen between digits is a pause."""
    text = _RANGE.sub(lambda m: f"{m[1]} to {m[2]}", text)
    return _HYPHEN.sub(" - ", _SIGN.sub("minus ", text))
