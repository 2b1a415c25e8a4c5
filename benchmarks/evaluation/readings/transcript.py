"""The words that each piece of a transcript may stand for.

A recogniser writes what it hears in its own way: "$5", "1984", "3:30 p.m.", "tom@mail.com". Each
piece gets every plausible reading, and nothing else: "1984" is never "five".
"""

import re
import unicodedata
from collections.abc import Callable, Iterator
from itertools import product

from benchmarks.evaluation.readings.number_words import (
    Readings,
    Words,
    cardinal_readings,
    decade_readings,
    fraction_readings,
    number_readings,
    ordinal,
    ordinal_readings,
)
from benchmarks.evaluation.readings.word_forms import SIGNS, WORD_FORMS, canonical

_NUMBER = r"\d{1,3}(?:,\d{3})+(?!\d)|\d+"
_CURRENCIES = {
    "$": (("dollar", "cent"), ("dollars", "cents")),
    "€": (("euro", "cent"), ("euros", "cents")),
    "£": (("pound", "penny"), ("pounds", "pence")),
}
_SCALE = r"thousand|million|billion|trillion"
_TIMES = "\u00d7"
# The apostrophe and the slash of fractions.
_PLAIN_SIGNS = str.maketrans({"\u2019": "'", "\u2044": "/"})
_MONTH = "January|February|March|April|May|June|July|August|September|October|November|December"
_ROMAN = {"II": 2, "III": 3, "IV": 4, "VI": 6, "VII": 7, "VIII": 8, "IX": 9, "XI": 11, "XII": 12}
# Longer words in capitals are shouted, not spelled.
_MAX_SPELLED_LETTERS = 5


def transcript_readings(text: str) -> list[Readings]:
    """Return the readings of each piece of a transcript, in order."""
    # NFKC writes ½ as three characters; a blank keeps them from the digits before.
    text = re.sub(r"(?<=\d)(?=[½¼¾⅓⅔])", " ", text)
    text = unicodedata.normalize("NFKC", text).translate(_PLAIN_SIGNS)
    return [_canonical(piece) for piece in _iter_pieces(text)]


def plain_words(text: str) -> Words:
    """Return the words of a text as they are, without its digits and signs."""
    return tuple(canonical(word) for word in re.findall(r"[a-z]+(?:'[a-z]+)*", text.lower()))


def _canonical(readings: Readings) -> Readings:
    return frozenset(tuple(canonical(word) for word in words) for words in readings)


def _iter_pieces(text: str) -> Iterator[Readings]:
    position = 0
    while position < len(text):
        for pattern, read in _FORMS:
            if match := pattern.match(text, position):
                yield read(match)
                position = match.end()
                break


def _read_money(match: re.Match[str]) -> Readings:
    (one, one_cent), (many, many_cents) = _CURRENCIES[match["currency"]]
    whole, cents = match["whole"], match["cents"] or ""
    if scale := match["scale"]:
        amounts = _decimal(whole, cents) if cents else number_readings(whole)
        return _join(amounts, scale.lower(), many)
    name, cent_name = (one, many)[whole != "1"], (one_cent, many_cents)[cents != "01"]
    if not cents or not cents.strip("0"):
        return _join(number_readings(whole), name)
    if len(cents) != 2:
        return _join(_decimal(whole, cents), many)
    small = cardinal_readings(int(cents))
    both = {
        (*dollars, *between, *rest, *after)
        for dollars, rest in product(number_readings(whole), small)
        for between in ((), (name,), (name, "and"))
        for after in ((), (cent_name,))
    }
    return frozenset(both) | _join(_decimal(whole, cents), many)


def _read_time(match: re.Match[str]) -> Readings:
    hour, minute = number_readings(match["hour"]), match["minute"]
    if minute == "00":
        return hour | _join(hour, "o'clock") | _join(hour, "hundred")
    after = number_readings(minute)
    return frozenset((*left, *right) for left, right in product(hour, after))


def _read_decimal(match: re.Match[str]) -> Readings:
    return _decimal(match["whole"], match["part"])


def _decimal(whole: str, part: str) -> Readings:
    """Return a decimal, a version or a time: three point one four, three eleven, one and a half."""
    both = set(product(number_readings(whole), number_readings(part)))
    readings = {(*left, *between, *right) for left, right in both for between in ((), ("point",))}
    readings |= {(*left, "dot", *right) for left, right in both}
    if part == "5":
        readings |= {(*left, "and", "a", "half") for left in number_readings(whole)}
    return frozenset(readings)


def _read_fraction(match: re.Match[str]) -> Readings:
    fraction = fraction_readings(match["above"], match["below"])
    if not match["whole"]:
        as_listed = product(number_readings(match["above"]), number_readings(match["below"]))
        return fraction | {(*left, *right) for left, right in as_listed}
    whole = number_readings(match["whole"])
    return frozenset(
        (*left, *between, *right)
        for left, right in product(whole, fraction)
        for between in ((), ("and",))
    )


def _read_day(match: re.Match[str]) -> Readings:
    """Read the day of a month, which is said as an ordinal even where it is written without."""
    days = number_readings(match["day"]) | ordinal_readings(match["day"])
    return frozenset((match["month"].lower(), *words) for words in days)


def _read_letters(match: re.Match[str]) -> Readings:
    word = match[0]
    readings = {(word.lower(),), *WORD_FORMS.get(word.lower(), ())}
    has_vowels = re.search("[aeiouy]", word.lower())
    if len(word) <= _MAX_SPELLED_LETTERS and (not word[1:].islower() or not has_vowels):
        readings.add(tuple(word.lower().replace("'", "")))
    if word in _ROMAN:
        for words in cardinal_readings(_ROMAN[word]):
            readings |= {words, ("the", *words[:-1], ordinal(words[-1]))}
    return frozenset(readings)


def _read_compound(match: re.Match[str]) -> Readings:
    """Read words with hyphens: as one word, and as several."""
    parts = [_read_letters(part) for part in re.finditer("[A-Za-z']+", match[0])]
    apart = {tuple(word for words in choice for word in words) for choice in product(*parts)}
    return frozenset(apart | {(match[0].replace("-", "").lower(),)})


def _read_sign(match: re.Match[str]) -> Readings:
    before, sign, after = match.string[: match.start()][-1:], match[0], match.string[match.end() :]
    if sign in SIGNS:
        return frozenset(SIGNS[sign])
    inside = before.isalnum() and after[:1].isalnum()
    if sign == "." and inside:
        is_initial = re.search(r"\b[A-Za-z]$", match.string[: match.start()])
        return frozenset({("dot",), ("point",), *([()] if is_initial else [])})
    if sign == "-" and after.lstrip()[:1].isdigit():
        return frozenset({(), ("to",), ("minus",), ("dash",)})
    if sign.strip() in ("x", _TIMES):
        return frozenset({("times",), ("by",), ("x",)})
    return frozenset({()})


def _join(readings: Readings, *words: str) -> Readings:
    return frozenset((*reading, *words) for reading in readings)


_Reader = Callable[[re.Match[str]], Readings]
# The first form that matches is read.
_FORMS: tuple[tuple[re.Pattern[str], _Reader], ...] = tuple(
    (re.compile(pattern), read)
    for pattern, read in (
        (
            rf"(?P<currency>[$€£])\s?(?P<whole>{_NUMBER})(?:\.(?P<cents>\d+))?"
            rf"(?:\s(?P<scale>(?i:{_SCALE}))\b)?",
            _read_money,
        ),
        (r"(?P<hour>\d{1,2}):(?P<minute>\d\d)(?!\d)", _read_time),
        (r"(?:(?P<whole>\d+)\s)?(?P<above>\d{1,2})/(?P<below>\d{1,2})(?![\d/])", _read_fraction),
        (rf"(?P<month>{_MONTH})\s(?P<day>\d\d?)\b(?![:.]\d)", _read_day),
        (r"(\d+)(?i:st|nd|rd|th)\b", lambda match: ordinal_readings(match[1])),
        (r"'?(\d+)'?s\b", lambda match: decade_readings(match[1])),
        (rf"(?P<whole>{_NUMBER})\.(?P<part>\d+)", _read_decimal),
        (_NUMBER, lambda match: number_readings(match[0])),
        (r"(?<=\d)\s?x(?=\s?\d)", _read_sign),
        (r"[A-Za-z']*[A-Za-z](?:-[A-Za-z]+)+", _read_compound),
        (r"[A-Za-z]+(?:'[A-Za-z]+)*", _read_letters),
        (r"(?s:.)", _read_sign),
    )
)
