"""Detect whether a text is read as Chinese or English, by its words or its context."""

import re
from collections.abc import Iterator
from itertools import islice
from typing import Literal

from sglang_omni.models.ming.text.chinese import MEASURES
from sglang_omni.models.ming.text.english import UNITS
from sglang_omni.models.ming.text.tokens import HAN, contains_chinese

Language = Literal["zh", "en"]

# Fewer consecutive English words are a name in a Chinese text: iPhone 15 Pro.
MIN_ENGLISH_WORDS = 3

_WORD = re.compile(rf"[{HAN}]|[^\s{HAN}，。！？：；、（）]+")
_UNITS = {name.lower() for name in (*MEASURES, *UNITS)}


def detect_language(text: str, previous: Language | None) -> Language | None:
    """Return the language of one fragment; `previous` is that of the text before it.

    None means that the language is still unknown.
    """
    if contains_chinese(text):
        return "zh"
    num_words = sum(1 for _ in islice(_iter_languages(text), MIN_ENGLISH_WORDS))
    return "en" if num_words >= (MIN_ENGLISH_WORDS if previous == "zh" else 1) else previous


def detect_first_language(text: str) -> Language | None:
    """Return the language of the first word that determines it, or None."""
    return next(_iter_languages(text), None)


def _iter_languages(text: str) -> Iterator[Language]:
    """Yield the language of each word that determines one.

    Numbers, and what is written together with a number (`A380`, `HK$20`, `25°C`, `5 kg`), are the
    same in both languages and determine none.
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
