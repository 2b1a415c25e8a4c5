"""What every manner changes in the sound: length, loudness, voicing, pitch and its variation."""

from collections.abc import Sequence
from typing import Any

import numpy as np

from cookbook.ming_mini.vocoder import RATE
from cookbook.ming_mini_2.evaluation.instructions import SayWith
from cookbook.ming_mini_2.evaluation.melody import pitch_of
from cookbook.ming_mini_2.voices.manner import CHOICES
from cookbook.ming_mini_2.voices.melody import measure_variation, steady_semitones

MANNERS: tuple[dict[str, str], ...] = tuple(
    {feature: value} for feature, values in CHOICES.items() for value in values if value != "medium"
)
"""Every value of every feature by itself, as the field `instructions` has it."""


def measure_manners(texts: Sequence[str], say: SayWith) -> dict[str, dict[str, Any]]:
    """Return the sound of all texts together, without an instruction and with each manner."""
    plain = {"none": describe_sound([say(text, None) for text in texts])}
    return plain | {
        f"{feature} {value}": describe_sound([say(text, {feature: value}) for text in texts])
        for manner in MANNERS
        for feature, value in manner.items()
    }


def describe_sound(clips: Sequence[np.ndarray]) -> dict[str, float | None]:
    """Return means over clips [n] in [-1, 1] at 44.1 kHz.

    They are seconds, level (root mean square), share of voiced frames, and in semitones the pitch
    over 100 Hz and its standard deviation, each None where no clip has enough voiced frames.
    """
    pitches = [pitch_of(clip) for clip in clips]
    steady = [steady_semitones(pitch) for pitch in pitches]
    variations = [one for pitch in pitches if (one := measure_variation(pitch)) is not None]
    medians = [float(np.median(one)) for one in steady if len(one)]
    return {
        "seconds": float(np.mean([len(clip) / RATE for clip in clips])),
        "level": float(np.mean([np.sqrt(np.mean(np.square(clip))) for clip in clips])),
        "voiced": float(np.mean([np.mean(pitch > 0) for pitch in pitches])),
        "semitones": float(np.mean(medians)) if medians else None,
        "variation": float(np.mean(variations)) if variations else None,
    }
