"""The language in which a text is read: Chinese or English, by its words or by those around it."""

import re
from collections.abc import Iterator
from itertools import islice
from typing import Literal

from sglang_omni.models.ming.text.chinese import MEASURES
from sglang_omni.models.ming.text.english import UNITS
from sglang_omni.models.ming.text.tokens import HAN, contains_chinese

Language = Literal["zh", "en"]

# Fewer English words in a row are a name inside of a Chinese text: iPhone 15 Pro.
FEWEST_WORDS = 3

_WORD = re.compile(rf"[{HAN}]|[^\s{HAN}，。！？：；、（）]+")
_UNITS = {name.lower() for name in (*MEASURES, *UNITS)}


def language_of(text: str, before: Language | None) -> Language | None:
    """Return the language of one fragment; `before` is that of the text before it.

    None is a language that nothing tells yet.
    """
    if contains_chinese(text):
        return "zh"
    words = sum(1 for _ in islice(_languages(text), FEWEST_WORDS))
    return "en" if words >= (FEWEST_WORDS if before == "zh" else 1) else before


def first_language(text: str) -> Language | None:
    """Return the language of the first word that tells it, or None."""
    return next(_languages(text), None)


def _languages(text: str) -> Iterator[Language]:
    """Yield the language of each word that tells one.

    Numbers, and what is written together with a number (`A380`, `HK$20`, `25°C`, `5 kg`), are
    written alike in both languages and tell nothing.
    """
    after_number = False
    for match in _WORD.finditer(text):
        word = match[0]
        if contains_chinese(word):
            yield "zh"
        elif _is_plain_word(word) and not (after_number and _is_unit(word)):
            yield "en"
        after_number = word[-1].isdigit()


def _is_plain_word(word: str) -> bool:
    return any(map(str.isalpha, word)) and not any(map(str.isdigit, word))


def _is_unit(word: str) -> bool:
    return word.lower().strip(".,;:!?()") in _UNITS
