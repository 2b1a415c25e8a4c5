"""Estimate how long a text takes to speak, and which words a chunk of audio speaks."""

import math
import re
from dataclasses import dataclass

from sglang_omni.models.ming.text.accumulate import Fragment
from sglang_omni.models.ming.text.tokens import contains_chinese

# The reference reads 16000 / 5818 characters per second, and never takes less than two seconds.
# This is the time of a Chinese character, or of a spelled-out letter, in slow speech.
SECONDS_PER_CHARACTER = 5818 / 16000
MIN_DURATION_S = 2.0
# Maximum time per letter of a word, without the blanks and marks around the word. The slowest of
# 188 clips in four voices (15 characters and more) needed 42 % of the resulting limit.
SECONDS_PER_LETTER = 0.2
# No word has more letters. The letters of a run beyond this number add no time.
MAX_WORD_LETTERS = 45
# Consecutive blanks and marks are one pause, however many there are.
MAX_PAUSE_SIGNS = 3

_SYLLABIC = "\u3040-\u30ff\u3400-\u4dbf\u4e00-\u9fff\uac00-\ud7af\uf900-\ufaff\U00020000-\U000323af"
_RUN = re.compile(rf"(?P<letters>[^\W\d_{_SYLLABIC}]+)|(?P<signs>[\W_]+)|.")
_VOWEL = re.compile(r"[aeiouy]|[^a-z]", re.IGNORECASE)

CHINESE_CHARACTERS_PER_S = 6.07
OTHER_CHARACTERS_PER_S = 16.0


def compute_reference_limit_s(text: str) -> float:
    """Return the reference's limit in seconds, which gives every character the same time.

    It also bounds music and sounds, whose length does not depend on the words of `text`.
    """
    return max(MIN_DURATION_S, len(text) * SECONDS_PER_CHARACTER)


def estimate_max_duration_s(text: str) -> float:
    """Return the maximum time in seconds that reading a fragment aloud can take.

    It never exceeds `compute_reference_limit_s`.
    """
    return max(MIN_DURATION_S, sum(_estimate_run_s(match) for match in _RUN.finditer(text)))


def _estimate_run_s(run: re.Match[str]) -> float:
    """Return the seconds of a run of letters, of blanks and marks, or of one other character."""
    length = len(run[0])
    if run["signs"]:
        return min(length, MAX_PAUSE_SIGNS) * SECONDS_PER_CHARACTER
    if run["letters"]:
        letter_s = SECONDS_PER_CHARACTER if _is_spelled_out(run[0]) else SECONDS_PER_LETTER
        return min(length, MAX_WORD_LETTERS) * letter_s
    return SECONDS_PER_CHARACTER


def _is_spelled_out(word: str) -> bool:
    """Whether a word may be read letter by letter: it is in capitals or has no vowel."""
    return word.isupper() or not _VOWEL.search(word)


def exceeds_reading_time(text: str, seconds: float) -> bool:
    """Whether `seconds` of speech are more than reading `text` can reasonably take."""
    return seconds / SECONDS_PER_CHARACTER >= len(text) and seconds > MIN_DURATION_S


@dataclass(frozen=True)
class HeardWords:
    """Text that a chunk of audio speaks, and the positions of its first and last character."""

    text: str
    first: int
    last: int


class Alignment:
    """Estimate which part of the text each chunk of audio speaks, by average reading speed.

    Streamed fragments advance chunk by chunk; for others every chunk reports the whole text.
    Positions continue from fragment to fragment, after the last position reported.
    """

    def __init__(self) -> None:
        """Create an alignment at the start of a text."""
        self._index = 0
        self._base = 0
        self._end = -1
        self._next = 0

    def start_fragment(self, fragment: Fragment) -> None:
        """Start `fragment`, which the following chunks speak."""
        if fragment.index != self._index:
            self._index, self._base = fragment.index, self._end + 1
        self._next = 0

    def locate_chunk(self, fragment: Fragment, seconds: float) -> HeardWords:
        """Locate the next `seconds` of audio in the current fragment."""
        text = fragment.text
        if fragment.is_streamed:
            first, last = self._advance(text, seconds)
            spoken = text[first : last + 1] if first != last else ""
        else:
            first, last, spoken = 0, len(text) - 1, text
        self._end = self._base + last
        return HeardWords(spoken, self._base + first, self._end)

    def _advance(self, text: str, seconds: float) -> tuple[int, int]:
        characters_per_s = (
            CHINESE_CHARACTERS_PER_S if contains_chinese(text) else OTHER_CHARACTERS_PER_S
        )
        first = min(self._next, len(text) - 1)
        last = min(first + math.ceil(seconds * characters_per_s), len(text)) - 1
        self._next = last + 1
        return first, last
