"""The words of a fragment as they are spoken, and how long each of them usually takes."""

import re
from collections.abc import Sequence
from dataclasses import dataclass

from sglang_omni.models.written_words import get_letters
from sglang_omni.normalization.tokens import HAN

# A token is a Han character or a run of other letters, with the marks up to the next one.
_TOKEN = re.compile(
    rf"(?P<letters>[{HAN}]|[^\W_{HAN}](?:[^\W_{HAN}]|['\u2019](?=\w))*)(?P<marks>[\W_]*)"
)
_PAUSE_MARK = re.compile(r"[,.;:!?\u2026\u2014\u2013\u3001\u3002\uff01\uff0c\uff1a\uff1b\uff1f]")
_DIGIT = re.compile(r"\d")
_VOWELS = re.compile(r"[aeiouy]+", re.IGNORECASE)
_SILENT_E = re.compile(r"(?<=[^aeiouy])e$", re.IGNORECASE)

# Seconds at an average pace. Only their ratios matter, because the pace of each fragment is known.
# Those of English are fitted to 1,350 words of Ming-mini's voices.
HAN_S = 0.2
DIGIT_S = 0.3
WORD_S = 0.03
SYLLABLE_S = 0.1
CONSONANT_S = 0.03
# A word before a pause is drawn out.
FINAL_S = 0.08


@dataclass(frozen=True)
class SpokenToken:
    """A word that is spoken.

    Attributes:
        text: The word.
        seconds: How long it takes at an average pace.
        has_pause: Whether a mark follows at which a reader pauses.
        first: Index of its first letter among the letters of the fragment.
        end: Index after its last letter.
    """

    text: str
    seconds: float
    has_pause: bool
    first: int
    end: int


def split_tokens(fragment: str) -> Sequence[SpokenToken]:
    """Return the words of a fragment as it is spoken."""
    tokens, position = [], 0
    matches = list(_TOKEN.finditer(fragment))
    for index, match in enumerate(matches):
        first, position = position, position + len(get_letters(match["letters"]))
        has_pause = index == len(matches) - 1 or bool(_PAUSE_MARK.search(match["marks"]))
        seconds = estimate_seconds(match["letters"]) + FINAL_S * has_pause
        tokens.append(SpokenToken(match["letters"], seconds, has_pause, first, position))
    return tokens


def estimate_seconds(word: str) -> float:
    """Return how many seconds a word takes at an average pace."""
    if not word.isascii() and len(word) == 1:
        return HAN_S
    letters = _DIGIT.sub("", word)
    vowels = _VOWELS.findall(_SILENT_E.sub("", letters))
    num_consonants = len(letters) - sum(map(len, vowels))
    digits_s = DIGIT_S * (len(word) - len(letters))
    return digits_s + WORD_S + SYLLABLE_S * len(vowels) + CONSONANT_S * num_consonants
