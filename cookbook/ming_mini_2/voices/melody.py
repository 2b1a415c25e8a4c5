"""The melody of speech: its pitch over time, and how much that varies.

Pitch is in Hz every 5 ms, as `cookbook.ming_mini.vocoder.analyse` finds it; 0 where there is no
voice.
"""

from dataclasses import dataclass

import numpy as np

MIN_HZ, MAX_HZ = 55.0, 480.0
"""No speaker of the recipe is lower or higher; other values are errors of the analysis."""
MIN_VOICED_FRAMES = 20
# Frames on either side of a voiced one that must be voiced too: the edges of a voiced stretch are
# where the analysis errs most.
EDGE_FRAMES = 2


@dataclass(frozen=True)
class MelodyChange:
    """A change of pitch: `semitones` up, and the factor `range` of its variation."""

    semitones: float = 0.0
    range: float = 1.0


SAME_MELODY = MelodyChange()


def fill_unvoiced(pitch: np.ndarray) -> np.ndarray:
    """Return the pitch [frames] with unvoiced frames interpolated on the logarithmic scale.

    Raises:
        ValueError: There is no voiced frame.
    """
    voiced = np.flatnonzero(pitch > 0)
    if len(voiced) == 0:
        raise ValueError("there is no voiced frame")
    logs = np.interp(np.arange(len(pitch)), voiced, np.log(pitch[voiced]))
    return np.exp(logs).clip(MIN_HZ, MAX_HZ)


def change_melody(pitch: np.ndarray, change: MelodyChange) -> np.ndarray:
    """Return the pitch [frames] moved, and stretched around its median; unvoiced frames stay 0."""
    voiced = pitch > 0
    if not voiced.any():
        return pitch.copy()
    logs = np.log(np.where(voiced, pitch, 1.0))
    middle = np.median(logs[voiced])
    moved = middle + change.range * (logs - middle) + change.semitones * np.log(2) / 12
    return np.where(voiced, np.exp(moved).clip(MIN_HZ, MAX_HZ), 0.0)


def steady_semitones(pitch: np.ndarray) -> np.ndarray:
    """Return the semitones over 100 Hz of frames that are voiced like their neighbours [n]."""
    voiced = (pitch > MIN_HZ) & (pitch < MAX_HZ)
    width = 2 * EDGE_FRAMES + 1
    inner = np.convolve(voiced, np.ones(width), mode="same") >= width
    return 12 * np.log2(pitch[inner] / 100)


def measure_variation(pitch: np.ndarray) -> float | None:
    """Return the standard deviation of the pitch in semitones; None with too few voiced frames."""
    semitones = steady_semitones(pitch)
    return float(np.std(semitones)) if len(semitones) >= MIN_VOICED_FRAMES else None
