"""Reduce English readings to one form: "Twenty-four" and "two thousand and five" variants alike.

Case, punctuation, hyphens and blanks do not count, nor do British spellings, "and" within numbers,
"oh" for zero, the order of day and month, and the scheme of a link.
"""

import re
import unicodedata

_UNITS = ["zero", "one", "two", "three", "four", "five", "six", "seven", "eight", "nine"]
_TEENS = [
    "ten",
    "eleven",
    "twelve",
    "thirteen",
    "fourteen",
    "fifteen",
    "sixteen",
    "seventeen",
    "eighteen",
    "nineteen",
]
_TENS = ["twenty", "thirty", "forty", "fifty", "sixty", "seventy", "eighty", "ninety"]
_SCALES = ["hundred", "thousand", "million", "billion", "trillion", "quadrillion"]
_ORDINALS = [
    "first",
    "second",
    "third",
    "fourth",
    "fifth",
    "sixth",
    "seventh",
    "eighth",
    "ninth",
    "tenth",
    "eleventh",
    "twelfth",
    "thirteenth",
    "fourteenth",
    "fifteenth",
    "sixteenth",
    "seventeenth",
    "eighteenth",
    "nineteenth",
    "twentieth",
    "thirtieth",
    "fortieth",
    "fiftieth",
    "sixtieth",
    "seventieth",
    "eightieth",
    "ninetieth",
    "hundredth",
    "thousandth",
]
_PARTS = [
    "half",
    "halves",
    "quarter",
    "quarters",
    "thirds",
    "fourths",
    "fifths",
    "sixths",
    "sevenths",
    "eighths",
    "ninths",
    "tenths",
    "fortieths",
    "twenties",
    "thirties",
    "forties",
    "fifties",
    "sixties",
    "seventies",
    "eighties",
    "nineties",
    "tens",
]
CARDINALS = frozenset((*_UNITS, *_TEENS, *_TENS, *_SCALES))
NUMBER_WORDS = CARDINALS | frozenset((*_ORDINALS, *_PARTS))
_MONTHS = [
    "january",
    "february",
    "march",
    "april",
    "may",
    "june",
    "july",
    "august",
    "september",
    "october",
    "november",
    "december",
]
_JOINED_BY_AND = frozenset(
    (*_SCALES, "dollar", "dollars", "pound", "pounds", "euro", "euros", "yuan", "yen", "rupees")
) | {"hour", "hours", "minute", "minutes"}
_SAME = {
    "oh": "zero", "naught": "zero", "nought": "zero", "negative": "minus", "hyphen": "dash",
    "metre": "meter", "metres": "meters", "litre": "liter", "litres": "liters",
    "kilometre": "kilometer", "kilometres": "kilometers", "centimetre": "centimeter",
    "centimetres": "centimeters", "millimetres": "millimeters", "grammes": "grams",
    "missus": "misses", "missis": "misses", "hashtag": "hash", "ampersand": "and",
    "fourty": "forty",
}  # fmt: skip
_ORDINAL = rf"(?:(?:{'|'.join(_TENS)}) )?(?:{'|'.join(_ORDINALS)})"
# Applied to the words, joined by blanks, at the end.
_PHRASES = (
    (re.compile(rf"\bthe (?={_ORDINAL}\b)"), ""),
    (re.compile(rf"\b({_ORDINAL}) (?:of )?({'|'.join(_MONTHS)})\b"), r"\2 \1"),
    (re.compile(r"\b(?:https?|h t t p(?: s)?)\b(?: colon slash slash)?"), ""),
    (re.compile(r"\b(?:www|w w w)\b(?: dot)?"), ""),
    (re.compile(r"\s+"), ""),
)
_BEFORE = (
    (re.compile(r"\bo'? ?clock\b"), " "),
    (re.compile("'"), ""),
    (re.compile(r"[^\w]|_"), " "),
    (re.compile(r"\bper cent\b"), "percent"),
    (re.compile(r"\bforward slash\b"), "slash"),
    (re.compile(r"\bequals? sign\b"), "equals"),
)


def reduce_english(text: str) -> str:
    """Return the form in which equal readings are equal."""
    text = unicodedata.normalize("NFKC", text).lower().replace("\u2019", "'")
    for pattern, replacement in _BEFORE:
        text = pattern.sub(replacement, text)
    words = [_SAME.get(word, word) for word in text.split()]
    words = _join_years(_drop_joiners(_read_zeros(words)))
    text = " ".join(words)
    for pattern, replacement in _PHRASES:
        text = pattern.sub(replacement, text)
    return text


def _neighbours(words: list[str], index: int) -> tuple[str, str]:
    before = words[index - 1] if index else ""
    return before, words[index + 1] if index + 1 < len(words) else ""


def _read_zeros(words: list[str]) -> list[str]:
    """Take "o" beside a number for zero."""
    return [
        "zero" if word == "o" and CARDINALS & {*_neighbours(words, index)} else word
        for index, word in enumerate(words)
    ]


def _drop_joiners(words: list[str]) -> list[str]:
    """Drop "and" within numbers and amounts; take "dot" between numbers for "point"."""
    kept = []
    for index, word in enumerate(words):
        before, after = _neighbours(words, index)
        if word == "and" and after in NUMBER_WORDS and before in _JOINED_BY_AND:
            continue
        is_point = word == "dot" and before in CARDINALS and after in CARDINALS
        kept.append("point" if is_point else word)
    return kept


def _join_years(words: list[str]) -> list[str]:
    """Take "twenty twenty-four" and "twenty oh five" for the number of thousands."""
    joined: list[str] = []
    skip = False
    for index, word in enumerate(words):
        before, after = _neighbours(words, index)
        if skip:
            skip = False
        elif word == "twenty" and before not in CARDINALS and after in (*_TEENS, *_TENS):
            joined += ["two", "thousand"]
        elif word == "twenty" and before not in CARDINALS and after == "zero":
            joined += ["two", "thousand"]
            skip = True
        else:
            joined.append(word)
    return joined
