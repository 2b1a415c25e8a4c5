"""Numbers that no other rule reads."""

import re

from sglang_omni.normalization.en.numbers import (
    BLANK,
    NUMBER,
    spell_digits,
    spell_integer,
    spell_number,
    to_plural,
)
from sglang_omni.normalization.rule import FormStart, Match, Rule, replace_with

# Longer numbers without separators are identifiers, unless they end with noughts.
MAX_PLAIN_DIGITS = 9
SUFFIXES = {
    "k": "thousand", "m": "million", "mn": "million", "mln": "million", "mio": "million",
    "b": "billion", "bn": "billion", "bln": "billion", "t": "trillion", "tn": "trillion",
}  # fmt: skip
SCALE_WORDS = ("hundred", "thousand", "million", "billion", "trillion", "quadrillion")

_CARDINAL = re.compile(NUMBER)
# 1.000.000, 1'000'000 and 1 000 000: twice or more, or it may be something else.
_SEPARATED = re.compile(
    r"(?<![\w.,'])\d{1,3}"
    r"(?:(?:\.\d{3}){2,8}+|(?:['\u2019]\d{3}){2,8}+|(?:[ \u00a0\u2009\u202f]\d{3}){2,8}+)"
    r"(?![\w'\u2019]|[.,]\d| \d)"
)
# 5 M is left alone: with a blank it is a name more often than a quantity.
_SUFFIXED = re.compile(
    rf"(?<!\w)(?P<number>{NUMBER})(?:{BLANK}?(?P<suffix>mn|mln|mio|bn|bln|tn)|(?P<letter>[kKMBT]))"
    r"(?![\w²³])",
)
_ROUND = re.compile(r"(?<!\w)1(?P<noughts>0{1,3}|0{6})s(?=[ \t\u00a0]of\b)")
_SCIENTIFIC = re.compile(
    rf"(?<![\w.,])(?P<mantissa>{NUMBER})(?:e|E(?=[-+\u2212]))"
    r"(?P<sign>[-+\u2212])?(?P<power>\d{1,3})(?!\w|\.\d)"
)
# The American pension plan.
_PLAN = re.compile(r"(?<![\w.,])401(?:\(k\)|k)(?!\w)", re.IGNORECASE)
_DIGIT_PLURAL = re.compile(r"(?<![\w.])(?P<number>\d{1,3})['\u2019]s\b")
_SIGNED = re.compile(r"(?<![\w)\]%.\-°²³])[-\u2212\u2013](?=\.?\d|[$€£¥])")
_PLUS = re.compile(r"(?<![\w)\]%])\+(?=\.?\d)")


def spell_quantity(number: str) -> str:
    """Read a number: 0.5 is "zero point five", 007 "zero zero seven", 12 "twelve"."""
    integer = number.partition(".")[0]
    if number.isdigit() and (_is_identifier(number) or (len(number) > 1 and number[0] == "0")):
        return spell_digits(number)
    if "," not in integer and len(integer) > 1 and integer.startswith("0"):
        return f"{spell_digits(integer)} point {spell_digits(number[len(integer) + 1 :])}"
    return spell_number(number)


def _is_identifier(digits: str) -> bool:
    return len(digits) > MAX_PLAIN_DIGITS and not digits.endswith("000")


def _read_cardinal(match: Match) -> str:
    return spell_quantity(match[0])


def _read_separated(match: Match) -> str:
    return spell_integer(re.sub(r"\D", "", match[0]))


def _read_suffixed(match: Match) -> str | None:
    """Read 3.5k as "three point five thousand"; 4K, 2B and 3T without decimals are names."""
    number, letter = match["number"], match["letter"]
    is_name = letter in ("K", "B", "T") and len(number) < 3 and "." not in number
    if letter and (is_name or (letter == "M" and "." not in number and len(number) > 3)):
        return None
    return f"{spell_number(number)} {SUFFIXES[(match['suffix'] or letter).lower()]}"


def _read_scientific(match: Match) -> str:
    """Read 1.5e-3 as "one point five times ten to the power of minus three"."""
    sign = "minus " if match["sign"] and match["sign"] != "+" else ""
    power = f"{sign}{spell_integer(match['power'])}"
    return f"{spell_number(match['mantissa'])} times ten to the power of {power}"


def _read_round(match: Match) -> str:
    words = {1: "tens", 2: "hundreds", 3: "thousands", 6: "millions"}
    return words[len(match["noughts"])]


def _read_digit_plural(match: Match) -> str:
    return to_plural(spell_integer(match["number"]))


SIGN_RULES = (
    Rule("minus", _SIGNED, replace_with("minus "), FormStart.SIGN),
    Rule("plus", _PLUS, replace_with("plus "), FormStart.SIGN),
)
# Before years and measures: 100s is also a time, and 1000s may be years.
ROUND_RULES = (
    Rule("quantity", _ROUND, _read_round, FormStart.DIGIT),
    Rule("quantity", _SCIENTIFIC, _read_scientific, FormStart.DIGIT),
    Rule("plan", _PLAN, replace_with("four oh one k"), FormStart.DIGIT),
)
# Before versions, which have full stops too.
SEPARATED_RULES = (Rule("cardinal", _SEPARATED, _read_separated, FormStart.DIGIT),)
SUFFIX_RULES = (Rule("quantity", _SUFFIXED, _read_suffixed, FormStart.DIGIT | FormStart.SIGN),)
RULES = (
    *SIGN_RULES,
    Rule("plural", _DIGIT_PLURAL, _read_digit_plural, FormStart.DIGIT),
    # Digits of other scripts are signs among the tokens.
    Rule("cardinal", _CARDINAL, _read_cardinal, FormStart.DIGIT | FormStart.SIGN),
)
