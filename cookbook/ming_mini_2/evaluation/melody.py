"""How much melody a model's speech has, relative to its teacher's."""

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import soxr

from cookbook.ming_mini.vocoder import RATE, find_pitch
from cookbook.ming_mini_2.voices.melody import measure_variation, steady_semitones

ANALYSIS_RATE = 16_000
Say = Callable[[str], np.ndarray]


def pitch_of(samples: np.ndarray) -> np.ndarray:
    """Return the pitch in Hz every 5 ms of samples [n] at 44.1 kHz."""
    return find_pitch(soxr.resample(samples, RATE, ANALYSIS_RATE), ANALYSIS_RATE)


def median_semitones(samples: np.ndarray) -> float | None:
    """Return the median pitch in semitones over 100 Hz; None where there is no steady voice."""
    semitones = steady_semitones(pitch_of(samples))
    return float(np.median(semitones)) if len(semitones) else None


def compare_melody(texts: Sequence[str], model: Say, teacher: Say) -> dict[str, Any]:
    """Return the mean variation of both in semitones within a sentence, and its ratio.

    Sentences in which either has too few voiced frames do not count.
    """
    pairs = [
        (measure_variation(pitch_of(model(text))), measure_variation(pitch_of(teacher(text))))
        for text in texts
    ]
    found = [(ours, theirs) for ours, theirs in pairs if ours is not None and theirs is not None]
    if not found:
        return {"items": 0, "model_semitones": None, "teacher_semitones": None, "ratio": None}
    ours, theirs = (float(np.mean(values)) for values in zip(*found, strict=True))
    return {
        "items": len(found),
        "model_semitones": ours,
        "teacher_semitones": theirs,
        "ratio": ours / theirs,
    }
