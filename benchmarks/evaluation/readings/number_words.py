"""Every way to say a number that is written in digits."""

from itertools import product

Words = tuple[str, ...]
# The readings of one piece of a transcript.
Readings = frozenset[Words]

_DIGITS = ("zero", "one", "two", "three", "four", "five", "six", "seven", "eight", "nine")
_TEENS = ("thirteen", "fourteen", "fifteen", "sixteen", "seventeen", "eighteen", "nineteen")
_ONES = (*_DIGITS, "ten", "eleven", "twelve", *_TEENS)
_TENS = ("", "", "twenty", "thirty", "forty", "fifty", "sixty", "seventy", "eighty", "ninety")
_SCALES = ((10**9, "billion"), (10**6, "million"), (1000, "thousand"), (100, "hundred"))
_IRREGULAR_ORDINALS = {
    "one": "first",
    "two": "second",
    "three": "third",
    "five": "fifth",
    "eight": "eighth",
    "nine": "ninth",
    "twelve": "twelfth",
}
# Longer numbers are not said in groups of digits.
_MAX_GROUPED_DIGITS = 4


def cardinal(value: int) -> Words:
    """Return the words of a number below 10**12, without "and"."""
    if value < 20:
        return (_ONES[value],)
    if value < 100:
        return (_TENS[value // 10], *_rest(value % 10))
    size, name = next(scale for scale in _SCALES if value >= scale[0])
    return (*cardinal(value // size), name, *_rest(value % size))


def cardinal_readings(value: int) -> Readings:
    """Return a number in words: "one hundred five", "one hundred and five", "a hundred five"."""
    plain = cardinal(value)
    readings = {plain}
    if value > 100 and value % 100:
        end = cardinal(value % 100)
        readings.add((*plain[: -len(end)], "and", *end))
    readings |= {("a", *words[1:]) for words in readings if words[1:2] and words[0] == "one"}
    return frozenset(readings)


def number_readings(digits: str) -> Readings:
    """Return all readings of digits: as a quantity, as a year, digit by digit, and in groups.

    Whoever writes "1,984" heard a quantity, not a year.
    """
    if "," in digits:
        return _quantity_readings(digits.replace(",", ""))
    readings = {tuple(_ONES[int(digit)] for digit in digits)}
    if len(digits) > 12:
        return frozenset(readings)
    if digits[0] != "0" or digits == "0":
        readings |= _quantity_readings(digits)
    if len(digits) <= _MAX_GROUPED_DIGITS:
        readings |= _in_groups(digits)
    return frozenset(readings)


def ordinal_readings(digits: str) -> Readings:
    """Return digits as ordinals: "twenty first"."""
    return frozenset((*words[:-1], ordinal(words[-1])) for words in number_readings(digits))


def decade_readings(digits: str) -> Readings:
    """Return digits as a decade: "nineteen eighties"."""
    return frozenset((*words[:-1], plural(words[-1])) for words in number_readings(digits))


def fraction_readings(numerator: str, denominator: str) -> Readings:
    """Return a fraction: "three quarters", "three fourths", "three over four"."""
    above, below = number_readings(numerator), number_readings(denominator)
    readings = {(*left, "over", *right) for left, right in product(above, below)}
    names = {(*words[:-1], ordinal(words[-1])) for words in below}
    names |= {"2": {("half",)}, "4": {("quarter",)}}.get(denominator, set())
    for left, name in product(above, names):
        readings.add((*left, *name[:-1], name[-1] if numerator == "1" else plural(name[-1])))
        if numerator == "1":
            readings |= {("a", *name), name}
    return frozenset(readings)


def ordinal(word: str) -> str:
    """Return the ordinal of a number word."""
    if word.endswith("y"):
        return word[:-1] + "ieth"
    return _IRREGULAR_ORDINALS.get(word, word + "th")


def plural(word: str) -> str:
    """Return the plural of a number word: "eighties", "halves", "thirds"."""
    if word.endswith("y"):
        return word[:-1] + "ies"
    return "halves" if word == "half" else word + "s"


def _rest(value: int) -> Words:
    return cardinal(value) if value else ()


def _quantity_readings(digits: str) -> Readings:
    readings = cardinal_readings(int(digits))
    if len(digits) == 4 and digits[1] != "0" and digits.endswith("00"):
        readings |= {(*cardinal(int(digits[:2])), "hundred")}
    return readings


def _in_groups(digits: str) -> set[Words]:
    """Return the readings in groups of one and two digits: "two twenty one"."""
    if not digits:
        return {()}
    groups = [digits[:1], *([digits[:2]] if len(digits) > 1 and digits[0] != "0" else [])]
    return {
        (*cardinal(int(group)), *rest)
        for group in groups
        for rest in _in_groups(digits[len(group) :])
    }
