"""Where a text that is still arriving can be cut, whatever follows.

A cut is safe after a complete word that no written form starts with or contains, and after the mark
that ends a sentence. So a number, date, link or address is never divided, and each part is read as
it is read within the whole text.
"""

import re

from sglang_omni.normalization.en.open_words import OPEN_WORDS
from sglang_omni.normalization.tokens import HAN
from sglang_omni.normalization.zh.open_words import OPEN_CHARACTERS

# A position is examined with this many characters before it.
_REACH = 48

_HAN_CHARACTER = re.compile(rf"[{HAN}]")
# Marks that no written form contains.
_FULL_WIDTH_MARK = re.compile(r"[。！？；，][”’」』）\"']*\s*\Z")
_CLOSING = "\"'”’)]}*_`"
# The end of a sentence needs white space after it: a dot may also be that of python.org or 3.14.
_SENTENCE_END = re.compile(
    rf"(?P<word>[^\W\d_]*)\w*(?P<mark>[.!?;])[{re.escape(_CLOSING)}]*\s\s*\Z"
)
# A complete word, perhaps with a mark, and white space after it.
_WORD_END = re.compile(
    rf"(?:(?<![\w.,:;@#$%&/\\+=<>~^°'’-])|(?<=[\s][\"'“‘(*_]))"
    rf"(?P<word>[^\W\d_{HAN}]+(?:['’-][^\W\d_{HAN}]+)*)[,:]?[{re.escape(_CLOSING)}]*\s+\Z"
)


def find_closed(text: str, end: int) -> int:
    """Return the last position at or before `end` that `is_closed`, or 0."""
    return next((position for position in range(end, 0, -1) if is_closed(text, position)), 0)


def is_closed(text: str, position: int) -> bool:
    """Whether no written form that starts before `position` can reach beyond it."""
    before = text[max(0, position - _REACH) : position]
    if text[position : position + 1].isspace():
        before += " "
    if _FULL_WIDTH_MARK.search(before):
        return True
    if _HAN_CHARACTER.fullmatch(before[-1:]):
        return before[-1] not in OPEN_CHARACTERS
    if end := _SENTENCE_END.search(before):
        return end["mark"] != "." or not _may_be_abbreviation(end["word"])
    word = _WORD_END.search(before)
    return word is not None and _is_plain(word["word"])


def _is_plain(word: str) -> bool:
    """Whether no written form starts with a word or contains it.

    A word in capitals may start the name of a model (RTX 4090), and a capitalised one a name with a
    number (Python 3.11, Henry VIII).
    """
    return len(word) > 1 and word.islower() and word not in OPEN_WORDS


def _may_be_abbreviation(word: str) -> bool:
    """Whether a dot after a word may be that of an abbreviation or an initial."""
    return len(word) == 1 or word.lower() in OPEN_WORDS
