"""The distance of two recordings of one text, independent of their tempo."""

import numpy as np
import soxr

RATE = 16_000
FRAME, HOP, BANDS = 1024, 400, 40
# Energies 60 dB below the loudest band of a recording are silence.
FLOOR = 1e-6


def log_mel(samples: np.ndarray, rate: int) -> np.ndarray:
    """Return the log mel energies [frames, 40] of float samples [n] at `rate` Hz, every 25 ms.

    Loudness is removed: each recording has mean 0.
    """
    sound = soxr.resample(samples.astype(np.float32), rate, RATE)
    sound = np.pad(sound, (0, max(0, FRAME - len(sound))))
    frames = np.lib.stride_tricks.sliding_window_view(sound, FRAME)[::HOP] * np.hanning(FRAME)
    energies = np.abs(np.fft.rfft(frames)) ** 2 @ _filters().T
    found = np.log(np.maximum(energies, max(FLOOR * energies.max(), 1e-12)))
    return np.asarray(found - found.mean())


def _filters() -> np.ndarray:
    """Return triangular filters on the mel scale (HTK: 2595 log10(1 + f / 700)), [bands, bins]."""
    top = 2595 * np.log10(1 + RATE / 2 / 700)
    edges = 700 * (10 ** (np.linspace(0, top, BANDS + 2) / 2595) - 1)
    bins = np.fft.rfftfreq(FRAME, 1 / RATE)
    low, middle, high = edges[:-2, None], edges[1:-1, None], edges[2:, None]
    return np.clip(np.minimum((bins - low) / (middle - low), (high - bins) / (high - middle)), 0, 1)


def mel_distance(one: np.ndarray, other: np.ndarray) -> float:
    """Return the mean absolute difference of two log-mel spectra [frames, bands], best aligned.

    The alignment is dynamic time warping, with steps of one frame in either or both.
    """
    cost = np.abs(one[:, None] - other[None]).mean(axis=-1)
    total, steps = np.full(len(other) + 1, np.inf), np.zeros(len(other) + 1)
    total[0] = 0.0
    for row in cost:
        before, before_steps = total.copy(), steps.copy()
        total[0] = np.inf
        for place, here in enumerate(row, 1):
            ways = (before[place - 1], before[place], total[place - 1])
            best = int(np.argmin(ways))
            counts = (before_steps[place - 1], before_steps[place], steps[place - 1])
            total[place], steps[place] = ways[best] + here, counts[best] + 1
    return float(total[-1] / steps[-1])
