"""Text whose class the writer names: `<say-as interpret-as="date">`, read in its language."""

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import partial

from sglang_omni.normalization.language import Language
from sglang_omni.normalization.normalizer import build_forced_normalizer
from sglang_omni.normalization.spelling import SPELLINGS

# A kind, and the names of the rules that read it: they are tried before all others.
_RULE_NAMES: Mapping[str, frozenset[str]] = {
    "time": frozenset({"time", "duration"}),
    "fraction": frozenset({"fraction"}),
    "currency": frozenset({"money"}),
    "unit": frozenset({"measure", "angle", "height", "length", "unit"}),
}
DATE_FORMATS = ("mdy", "dmy", "ymd", "md", "dm", "ym", "my", "y")
"""The orders of year, month and day that `format` may name."""

_NUMBER = re.compile(r"[-+\u2212]?(?:\d{1,3}(?:,\d{3})+|\d+)(?:\.\d+)?|[-+\u2212]?\.\d+")
_ORDINAL = re.compile(r"(?P<digits>\d+)(?:st|nd|rd|th|\.)?")
_DIGITS = re.compile(r"\d[\d\s.,/-]*")
_TELEPHONE = re.compile(r"\+?[\d()][\d\s().#/-]*(?:\s?(?:ext\.?|x|转|分机)\s?\d+)?")
_ANY_DIGIT = re.compile(r"[0-9]")


@dataclass(frozen=True)
class _Date:
    """The parts of a date, as written; an empty one is absent."""

    year: str = ""
    month: str = ""
    day: str = ""

    @property
    def is_valid(self) -> bool:
        """Whether the month and the day exist."""
        has_month = not self.month or 1 <= int(self.month) <= 12
        return has_month and (not self.day or 1 <= int(self.day) <= 31)


def read_as(kind: str, text: str, language: Language, date_format: str = "") -> str | None:
    """Return the words of a text of a kind, or None where the text is not of that kind.

    Args:
        kind: One of `KINDS`.
        text: The text, without blanks around it.
        language: The language to read it in.
        date_format: Order of the parts of a date, one of `DATE_FORMATS`; "" for the usual one.
    """
    if kind == "date" and date_format:
        return _read_ordered_date(text, language, date_format)
    return _READERS[kind](text, language)


def _read_characters(text: str, language: Language) -> str | None:
    """Read each letter, digit and sign by its name."""
    spelling = SPELLINGS[language]
    return spelling.join([name for name in map(spelling.name_of, text) if name]) or None


def _read_number(text: str, language: Language) -> str | None:
    return SPELLINGS[language].cardinal(text) if _NUMBER.fullmatch(text) else None


def _read_ordinal(text: str, language: Language) -> str | None:
    match = _ORDINAL.fullmatch(text.removeprefix("第"))
    return SPELLINGS[language].ordinal(match["digits"]) if match else None


def _read_digits(text: str, language: Language) -> str | None:
    if not _DIGITS.fullmatch(text):
        return None
    return SPELLINGS[language].digits("".join(_ANY_DIGIT.findall(text)))


def _read_telephone(text: str, language: Language) -> str | None:
    return SPELLINGS[language].telephone(text) if _TELEPHONE.fullmatch(text) else None


def _read_by_rules(kind: str, text: str, language: Language) -> str | None:
    """Read a text by the rules of its kind, then by the others."""
    return _normalize(text, language, _RULE_NAMES[kind])


def _read_date(text: str, language: Language) -> str | None:
    return _normalize(text, language, frozenset({"date", "year"}))


def _read_ordered_date(text: str, language: Language, order: str) -> str | None:
    """Read digits in a given order: 05/06 as "dm" is the fifth of June."""
    numbers = re.findall(r"\d+", text)
    if len(numbers) != len(order):
        return None
    names = {"y": "year", "m": "month", "d": "day"}
    date = _Date(**dict(zip((names[part] for part in order), numbers, strict=True)))
    if not date.is_valid:
        return None
    return SPELLINGS[language].date(date.year, date.month, date.day)


def _normalize(text: str, language: Language, names: frozenset[str]) -> str | None:
    """Return the words of a text with digits; None if it has none or if some remain."""
    words = build_forced_normalizer(language, names).normalize(text).strip()
    is_read = any(map(str.isalpha, words)) and not _ANY_DIGIT.search(words)
    return words if is_read and words != text else None


_READERS: dict[str, Callable[[str, Language], str | None]] = {
    "characters": _read_characters,
    "spell-out": _read_characters,
    "verbatim": _read_characters,
    "cardinal": _read_number,
    "number": _read_number,
    "ordinal": _read_ordinal,
    "digits": _read_digits,
    "telephone": _read_telephone,
    "date": _read_date,
    **{kind: partial(_read_by_rules, kind) for kind in _RULE_NAMES},
}
KINDS = tuple(_READERS)
"""The values of `interpret-as`."""
