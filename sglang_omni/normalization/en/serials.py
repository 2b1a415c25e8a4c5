"""Serial numbers, models and codes, in which letters and digits stand together."""

import re

from sglang_omni.normalization.en.numbers import (
    spell_digits,
    spell_integer,
    spell_pairs,
    spell_year,
    text_before,
)
from sglang_omni.normalization.rule import FormStart, Match, Rule

_SERIAL = re.compile(
    r"(?<![A-Za-z0-9_])(?=[A-Za-z-]{0,30}\d)(?P<serial>[A-Za-z0-9]{1,40}+(?:-[A-Za-z0-9]{1,20}+){0,8})"
    r"(?P<decimals>\.\d{1,6})?(?![A-Za-z0-9_])"
)
_PART = re.compile(r"\d+|[A-Za-z]+|-")
_NUMBER = re.compile(r"(?<![A-Za-z0-9_.,$€£¥/:+-])(?P<digits>\d{3,12})(?![A-Za-z0-9_%/:]|[.,]\d)")
# A word and a number, which others read: mid-1980s, top-10.
_WORD_FIRST = re.compile(r"[A-Za-z]?[a-z]{2,20}-\d")
_FOUR_DIGITS = 4

# What is read digit by digit.
_CODE_BEFORE = re.compile(
    r"(?<![A-Za-z])(?i:pin|otp|pnr|code|codes|password|passcode|passport|id|login|"
    r"(?:account|card|phone|confirmation|tracking|order|reference|routing|serial|license|licence|"
    r"case|ticket|booking|member|policy|invoice|flight|model|part|contact|mobile|tax|registration|"
    r"room|vin|identification) (?:number|no\.?|id|code)|zip|postcode|captcha)"
    r"(?: (?:is|was|of|are))?[ :#]{1,3}$"
)
# What is read in pairs: Room 205, Flight 370, Boeing 747, HTTP 404, RTX 4090.
_PAIRS_BEFORE = re.compile(
    r"(?:(?<![A-Za-z])(?i:room|rooms|suite|apartment|apt\.?|flight|route|highway|hwy\.?|interstate|gate|"
    r"channel|boeing|airbus|bmw|porsche|peugeot|error|status|http|bus|train|nokia|form|studio|area|"
    r"radeon|geforce|ryzen|core i\d|snapdragon|xeon|model|locker|platform|warehouse|unit|"
    r"united|delta|lufthansa|emirates|ryanair|galaxy|thinkpad|latitude|series)|"
    r"(?<![A-Za-z])(?!USD|EUR|GBP|JPY|CNY|INR|CHF|CAD|AUD|FAQ|OK|AM|PM|AD|BC)[A-Z]{2,5})[ #-]{1,2}$"
)


def spell_serial(serial: str, *, is_code: bool = False) -> str:
    """Read letters as they are and digits as numbers: "B2A23C" is "B two A twenty-three C".

    The digits of a code, such as a password, are read one by one.
    """
    spoken: list[str] = []
    before = ""
    for part in _PART.findall(serial):
        spoken.append(_spell_part(part, before, is_code) if part.isdecimal() else part)
        before += part
    return " ".join(spoken).replace(" - ", "-")


def _spell_part(digits: str, before: str, is_code: bool) -> str:
    if is_code or digits.startswith("0") or len(digits) > _FOUR_DIGITS:
        return spell_digits(digits)
    if len(digits) == _FOUR_DIGITS:
        return spell_year(digits)
    is_model = len(digits) == 3 and before.rstrip("-")[-1:].isalpha()
    return spell_pairs(digits) if is_model else spell_integer(digits)


def _read_serial(match: Match) -> str | None:
    serial = match["serial"]
    if _WORD_FIRST.match(serial):
        return None
    if not re.search("[A-Za-z]", serial) or not re.search("[A-Za-z]-?[0-9]|[0-9][A-Za-z]", serial):
        return None
    spoken = spell_serial(serial, is_code=bool(_CODE_BEFORE.search(text_before(match))))
    decimals = match["decimals"]
    return f"{spoken} point {spell_digits(decimals[1:])}" if decimals else spoken


def _read_code(match: Match) -> str | None:
    return spell_digits(match["digits"]) if _CODE_BEFORE.search(text_before(match)) else None


def _read_model(match: Match) -> str | None:
    """Read three or four digits after the name of a model or a place in pairs."""
    digits = match["digits"]
    is_named = len(digits) <= _FOUR_DIGITS and _PAIRS_BEFORE.search(text_before(match))
    if not is_named or digits.startswith("0"):
        return None
    return spell_year(digits) if len(digits) == _FOUR_DIGITS else spell_pairs(digits)


CODE_RULES = (
    Rule("code", _NUMBER, _read_code, FormStart.DIGIT),
    Rule("model", _NUMBER, _read_model, FormStart.DIGIT),
)
RULES = (Rule("serial", _SERIAL, _read_serial, FormStart.DIGIT | FormStart.LETTER),)
