"""English number words, and the patterns of written numbers."""

import re

from sglang_omni.normalization.rule import Match

# Blanks within a form: the ordinary one, and those that typesetters put before a unit.
BLANK = r"[ \t\u00a0\u2009\u202f]"
DASH = r"[-\u2010-\u2015\u2212~\uff5e]"
# Bounded and possessive, so that a long run of digits and commas takes linear time.
GROUPED = r"\d{1,3}(?:,\d{3}){1,8}+(?!\d)"
INTEGER = rf"(?:{GROUPED}|\d++)"
NUMBER = rf"(?:{INTEGER}(?:\.\d++)?|(?<![\d.])\.\d++)"
# 1,5 and 2,50 in the forms of prices and measures: elsewhere a comma separates two numbers.
# So does 1.234,56.
COMMA_DECIMAL = r"(?:\d{1,3}(?:[. ]\d{3}){1,8}+,\d\d|\d{1,9},\d{1,2})(?![\d]|[.,]\d)"

# After an abbreviation with a full stop: the sentence ends with it. Days go on: 6 p.m. Monday.
SENTENCE_END = re.compile(
    r"\s*\Z|\s*\n|\s+[\"\u201c(]?[A-Z](?!(?:on|ues|ednes|hurs|ri|atur|un)(?:day)?\b)"
)

# How far back a rule looks for what decides its reading.
_LOOK_BACK = 60

DIGITS = ("zero", "one", "two", "three", "four", "five", "six", "seven", "eight", "nine")
_TEENS = (
    "ten", "eleven", "twelve", "thirteen", "fourteen",
    "fifteen", "sixteen", "seventeen", "eighteen", "nineteen",
)  # fmt: skip
TENS = ("", "", "twenty", "thirty", "forty", "fifty", "sixty", "seventy", "eighty", "ninety")
SCALES = ("", "thousand", "million", "billion", "trillion")
# Longer numbers are identifiers rather than quantities, and are read digit by digit.
MAX_DIGITS = 3 * len(SCALES)

_IRREGULAR_ORDINALS = {
    "one": "first", "two": "second", "three": "third", "five": "fifth",
    "eight": "eighth", "nine": "ninth", "twelve": "twelfth",
}  # fmt: skip


def text_before(match: Match) -> str:
    """Return the text just before a match, as far as rules look back."""
    return match.string[max(0, match.start() - _LOOK_BACK) : match.start()]


def spell_digits(digits: str) -> str:
    """Read digit by digit: 405 is "four zero five"."""
    return " ".join(DIGITS[int(digit)] for digit in digits)


def spell_integer(digits: str) -> str:
    """Read a natural number as a quantity: 1250 is "one thousand two hundred fifty"."""
    digits = digits.lstrip("0") or "0"
    if len(digits) > MAX_DIGITS:
        return spell_digits(digits)
    groups = f"{int(digits):,}".split(",")
    words = [
        f"{_spell_group(int(group))} {SCALES[len(groups) - 1 - index]}".strip()
        for index, group in enumerate(groups)
        if int(group)
    ]
    return " ".join(words) or DIGITS[0]


def spell_number(number: str) -> str:
    """Read a decimal number, which may have a sign and separators of thousands."""
    sign = "minus " if number[0] in "-\u2212" else ""
    integer, *decimals = number.lstrip("+-\u2212").replace(",", "").split(".")
    words = [spell_integer(integer)] if integer else []
    # More than one point is no number, but nothing that is written may fail.
    words += [f"point {spell_digits(digits)}" for digits in decimals if digits]
    return sign + " ".join(words)


def with_point(number: str) -> str:
    """Return a number with a decimal point: 2,50 is 2.50, and 2,500 is as it was."""
    if not re.fullmatch(COMMA_DECIMAL, number):
        return number
    return re.sub("[. ]", "", number).replace(",", ".")


def spell_pairs(digits: str) -> str:
    """Read three or four digits in pairs, as years and house numbers: 1984, 1905, 708."""
    high, low = digits[:-2], digits[-2:]
    if int(low) == 0:
        return f"{spell_integer(high)} hundred"
    return f"{spell_integer(high)} {spell_two_digits(low)}"


def spell_two_digits(digits: str) -> str:
    """Read two digits with a leading zero as "oh": 05 is "oh five"."""
    return f"oh {DIGITS[int(digits)]}" if digits.startswith("0") else spell_integer(digits)


def spell_year(digits: str) -> str:
    """Read a year: 1984, 1900, 2006, 2024, 800."""
    year = int(digits)
    if len(digits) != 4 or year % 1000 < 10:
        return spell_integer(digits)
    return spell_pairs(digits)


def spell_ordinal(digits: str) -> str:
    """Read an ordinal: 21 is "twenty-first"."""
    if len(digits) > MAX_DIGITS:
        return spell_digits(digits)
    return to_ordinal(spell_integer(digits))


def to_ordinal(words: str) -> str:
    """Return the ordinal of a number in words."""
    last = _last_word(words)
    head = words.removesuffix(last)
    if last in _IRREGULAR_ORDINALS:
        return head + _IRREGULAR_ORDINALS[last]
    return head + (f"{last[:-1]}ieth" if last.endswith("y") else f"{last}th")


def to_plural(words: str) -> str:
    """Return the plural of a number in words: "nineties", "sixes"."""
    if words.endswith("y"):
        return f"{words[:-1]}ies"
    return f"{words}es" if words.endswith("x") else f"{words}s"


def _last_word(words: str) -> str:
    return words.replace("-", " ").rsplit(" ", 1)[-1]


def _spell_group(number: int) -> str:
    """Read a number below 1000."""
    hundreds, rest = divmod(number, 100)
    words = [f"{DIGITS[hundreds]} hundred"] if hundreds else []
    if rest >= 20:
        tens, ones = divmod(rest, 10)
        words.append(f"{TENS[tens]}-{DIGITS[ones]}" if ones else TENS[tens])
    elif rest >= 10:
        words.append(_TEENS[rest - 10])
    elif rest:
        words.append(DIGITS[rest])
    return " ".join(words)
