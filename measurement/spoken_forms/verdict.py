"""Judge a reading: right, odd, or one that loses what was written."""

import re
import unicodedata
from collections import Counter
from collections.abc import Sequence
from typing import Literal

from measurement.spoken_forms.chinese import NUMERALS, reduce_chinese
from measurement.spoken_forms.english import NUMBER_WORDS, reduce_english

Verdict = Literal["right", "odd", "empty", "symbol", "word", "number"]
CATASTROPHIC: tuple[Verdict, ...] = ("empty", "symbol", "word", "number")

_REDUCE = {"en": reduce_english, "zh": reduce_chinese}
_LEFT_OVER = re.compile(r"[@#$%&/\\=+<>_^~°£€¥￥*|`²³×÷≥≤±℃℉\[\]{}]|\d")
_WORD = re.compile(r"[a-z]{2,}|[\u4e00-\u9fff]")


def judge(written: str, spoken: str, accepted: Sequence[str], language: str) -> Verdict:
    """Return "right" for an accepted reading, "odd" for another, or what it loses.

    Lost are all words ("empty"), digits and signs that are not read ("symbol"), words that stand in
    the text and in every accepted reading ("word"), and half of the numerals ("number").
    """
    reduce = _REDUCE[language]
    if reduce(spoken) in set(map(reduce, accepted)):
        return "right"
    if not re.search(r"\w", spoken):
        return "empty"
    if set(_LEFT_OVER.findall(spoken)).difference(*map(_LEFT_OVER.findall, accepted)):
        return "symbol"
    if all(_lost_words(written, spoken, reading) for reading in accepted):
        return "word"
    if all(count_numerals(spoken) * 2 < count_numerals(reading) for reading in accepted):
        return "number"
    return "odd"


def count_numerals(text: str) -> int:
    """Return how many number words a reading has, in either language."""
    words = re.findall("[a-z]+", text.lower())
    chinese = sum(character in f"{NUMERALS}两幺〇" for character in text)
    return chinese + sum(word in NUMBER_WORDS for word in words)


def _lost_words(written: str, spoken: str, reading: str) -> bool:
    """Whether a word of the text and of an accepted reading is missing in what is spoken."""
    heard = _find_words(spoken)
    joined = "".join(heard)
    missing = (Counter(_find_words(reading)) & Counter(_find_words(written))) - Counter(heard)
    return any(not (word.isascii() and word in joined) for word in missing)


def _find_words(text: str) -> list[str]:
    text = unicodedata.normalize("NFKC", text).lower()
    return _WORD.findall(text.replace("'", "").replace("\u2019", ""))
