"""How long a text sounds: the guard against endless speech, and which words are being heard."""

import math
import re
from dataclasses import dataclass

from sglang_omni.models.ming.text.accumulate import Fragment
from sglang_omni.models.ming.text.tokens import contains_chinese

# The reference's reading speed is 16000 / 5818 characters a second, and never under two seconds.
# That is what a Chinese character takes in slow speech, and so does a letter that is spelled out.
SECONDS_PER_CHARACTER = 5818 / 16000
MIN_SECONDS = 2.0
# What a letter of a word takes at the most, beside the blanks and marks around the word. By this,
# the slowest of 188 clips in four voices (15 characters and more) needed 42 % of its limit.
SECONDS_PER_LETTER = 0.2
# No word has more letters; a longer run is none, and what is beyond gets no time of its own.
LONGEST_WORD = 45
# Blanks and marks in a row are one pause, however many there are.
LONGEST_PAUSE = 3

_SYLLABIC = "\u3040-\u30ff\u3400-\u4dbf\u4e00-\u9fff\uac00-\ud7af\uf900-\ufaff\U00020000-\U000323af"
_RUN = re.compile(rf"(?P<letters>[^\W\d_{_SYLLABIC}]+)|(?P<signs>[\W_]+)|.")
_VOWEL = re.compile(r"[aeiouy]|[^a-z]", re.IGNORECASE)

CHINESE_RATE = 6.07  # characters a second
OTHER_RATE = 16.0


def reference_seconds(text: str) -> float:
    """Return the reference's limit in seconds, which gives every character the same time.

    It also bounds music and sounds, whose length has nothing to do with the words of `text`.
    """
    return max(MIN_SECONDS, len(text) * SECONDS_PER_CHARACTER)


def max_seconds(text: str) -> float:
    """Return how many seconds reading a fragment aloud can take at the most.

    Never more than `reference_seconds`.
    """
    return max(MIN_SECONDS, sum(_run_seconds(match) for match in _RUN.finditer(text)))


def _run_seconds(run: re.Match[str]) -> float:
    """Seconds of a run of letters, of blanks and marks, or of one other character."""
    length = len(run[0])
    if run["signs"]:
        return min(length, LONGEST_PAUSE) * SECONDS_PER_CHARACTER
    if run["letters"]:
        each = SECONDS_PER_CHARACTER if _is_spelled_out(run[0]) else SECONDS_PER_LETTER
        return min(length, LONGEST_WORD) * each
    return SECONDS_PER_CHARACTER


def _is_spelled_out(word: str) -> bool:
    """Whether a word may be read letter by letter: capitals, or no vowel."""
    return word.isupper() or not _VOWEL.search(word)


def enough(text: str, seconds: float) -> bool:
    """Whether `seconds` of speech are more than reading `text` can reasonably take."""
    return seconds / SECONDS_PER_CHARACTER >= len(text) and seconds > MIN_SECONDS


@dataclass(frozen=True)
class HeardWords:
    """What a chunk of audio speaks: the text, and its first and last character's position."""

    text: str
    first: int
    last: int


class Alignment:
    """Which part of the text each chunk of audio speaks, by the usual reading speed.

    Streamed fragments advance chunk by chunk; of the others every chunk reports the whole.
    Positions continue from fragment to fragment, after the last position reported.
    """

    def __init__(self) -> None:
        """Nothing was heard yet."""
        self._index = 0
        self._base = 0
        self._end = -1
        self._next = 0

    def begin(self, fragment: Fragment) -> None:
        """The chunks that follow speak `fragment`."""
        if fragment.index != self._index:
            self._index, self._base = fragment.index, self._end + 1
        self._next = 0

    def hear(self, fragment: Fragment, seconds: float) -> HeardWords:
        """Locate the next `seconds` of the fragment begun last."""
        text = fragment.text
        if fragment.streamed:
            first, last = self._advance(text, seconds)
            spoken = text[first : last + 1] if first != last else ""
        else:
            first, last, spoken = 0, len(text) - 1, text
        self._end = self._base + last
        return HeardWords(spoken, self._base + first, self._end)

    def _advance(self, text: str, seconds: float) -> tuple[int, int]:
        rate = CHINESE_RATE if contains_chinese(text) else OTHER_RATE
        first = min(self._next, len(text) - 1)
        last = min(first + math.ceil(seconds * rate), len(text)) - 1
        self._next = last + 1
        return first, last
