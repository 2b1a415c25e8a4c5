"""Sounds that a voice activity detector takes for speech, and some that it does not.

Plain numpy: the scripts of `ci/clients` use them, too, where nothing of this project is installed.
"""

import numpy as np

RATE = 24_000
PITCH_HZ = 120.0
# Centre and width of an open vowel's first formants, in Hz.
FORMANTS = ((700.0, 80.0), (1200.0, 90.0), (2600.0, 120.0))
SYLLABLES_PER_SECOND = 4


def voice(seconds: float, rate: int = RATE) -> np.ndarray:
    """Float32 [samples] of somebody who says "ah ah ah".

    They are harmonics of a wavering pitch under the resonances of a mouth, four syllables a second.
    """
    time = np.arange(int(seconds * rate)) / rate
    pitch = PITCH_HZ * (1 + 0.1 * np.sin(2 * np.pi * 3 * time))
    phase = 2 * np.pi * np.cumsum(pitch) / rate
    sound = np.zeros_like(time)
    for harmonic in range(1, int(7000 / PITCH_HZ)):
        frequency = harmonic * PITCH_HZ
        gain = sum(1 / (1 + ((frequency - place) / width) ** 2) for place, width in FORMANTS)
        sound += gain * np.sin(harmonic * phase)
    loudness = 0.2 + 0.4 * (1 - np.cos(2 * np.pi * SYLLABLES_PER_SECOND * time))
    sound *= loudness
    return (0.3 * sound / np.abs(sound).max()).astype(np.float32)


def silence(seconds: float, rate: int = RATE) -> np.ndarray:
    """Float32 [samples] of nothing."""
    return np.zeros(int(seconds * rate), np.float32)


def pcm16(samples: np.ndarray) -> bytes:
    """16-bit little-endian samples."""
    return np.rint(samples * 32_767).astype("<i2").tobytes()
