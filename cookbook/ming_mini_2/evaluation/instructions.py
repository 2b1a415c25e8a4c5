"""Whether speech follows an instruction: speed and pitch move as asked, and the words stay."""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from random import Random
from typing import Any

import numpy as np

from cookbook.ming_mini_2.evaluation.melody import median_semitones
from cookbook.ming_mini_2.voices.instructions import draw_free_text
from cookbook.ming_mini_2.voices.manner import NEUTRAL, Manner, manner_to_json
from measurement.edit_distance import edit_distance
from measurement.intervals import wilson_interval
from measurement.pocketsphinx_recogniser import spoken_words

ASKED = (Manner(speed="slow"), Manner(speed="fast"), Manner(pitch="low"), Manner(pitch="high"))
"""The manners that are asked in turn."""
MIN_FACTOR, MIN_SEMITONES = 1.05, 0.5
"""A change of the duration or the pitch below this does not count as one."""
MORE_ERRORS = 0.1
"""The share of the words that may be misheard beyond those without the instruction."""
MOST_ERRORS = 0.5
"""The share of the words that may be misheard at most: of speech that nobody understands, the words
were not kept, however it sounds without the instruction."""

SayWith = Callable[[str, object], np.ndarray]
"""A text and the field `instructions` (None for none) to samples [n]."""
TeachWith = Callable[[str, Manner], np.ndarray]
"""A text and a manner to samples [n], as a teacher's clip has them."""


@dataclass(frozen=True)
class InstructedSpeech:
    """One text said without and with an instruction."""

    asked: Manner
    text: str
    plain: np.ndarray
    changed: np.ndarray

    def has_moved(self) -> bool:
        """Return whether the asked feature has changed in the asked direction."""
        if self.asked.speed:
            factor = len(self.changed) / len(self.plain)
            return factor > MIN_FACTOR if self.asked.speed == "slow" else factor < 1 / MIN_FACTOR
        before, after = median_semitones(self.plain), median_semitones(self.changed)
        if before is None or after is None:
            return False
        up = after - before
        return up > MIN_SEMITONES if self.asked.pitch == "high" else up < -MIN_SEMITONES

    def keeps_words(self, hear: Callable[[np.ndarray], list[str]]) -> bool:
        """Return whether the words are understood, and hardly less often than without it."""
        words = spoken_words(self.text)
        plain, changed = (
            edit_distance(words, hear(samples)) for samples in (self.plain, self.changed)
        )
        most = min(plain + MORE_ERRORS * len(words), MOST_ERRORS * len(words))
        return changed <= most


def ask_in_turn(texts: Sequence[str], seed: int, say: SayWith) -> Iterator[InstructedSpeech]:
    """Say every text without and with an instruction, as fields and as held-out free texts."""
    rng = Random(f"instructions {seed}")
    for number, text in enumerate(texts):
        asked = ASKED[number % len(ASKED)]
        free = number // len(ASKED) % 2
        value: object = manner_to_json(asked)
        if free:
            value = draw_free_text(asked, rng, "held_out")
        yield InstructedSpeech(asked, text, say(text, None), say(text, value))


def teach_in_turn(texts: Sequence[str], teach: TeachWith) -> Iterator[InstructedSpeech]:
    """Let a teacher say every text without and with the manner that `ask_in_turn` asks for."""
    for number, text in enumerate(texts):
        asked = ASKED[number % len(ASKED)]
        yield InstructedSpeech(asked, text, teach(text, NEUTRAL), teach(text, asked))


def measure_instructions(
    items: Sequence[InstructedSpeech], hear: Callable[[np.ndarray], list[str]]
) -> dict[str, Any]:
    """Return the shares of items that moved as asked, that kept the words, and that did both."""
    moved = [item.has_moved() for item in items]
    kept = [item.keeps_words(hear) for item in items]
    both = sum(one and other for one, other in zip(moved, kept, strict=True))
    return {
        "items": len(items),
        "moved": sum(moved) / len(items),
        "words_kept": sum(kept) / len(items),
        "accuracy": both / len(items),
        "interval": wilson_interval(both, len(items)),
    }
