"""When the pulses of a voice occur, for a pitch that changes over time.

The head of the VAE predicts the phases of spectra, and they follow from the times of the pulses.
Free pulses follow the pitch exactly. Locked ones have a fixed phase wherever a latent begins, so
that neither the VAE nor the talker must carry it from one latent to the next. The mean pitch of
a locked latent is a multiple of 12.5 Hz, or a part of that (`per_cycle`).
"""

import numpy as np

from cookbook.ming_mini.vocoder import FRAME_SECONDS, RATE, Pulses

LATENT = 3528
"""Samples of a latent, 80 ms."""
PLACES_A_SAMPLE = 16
"""Pulses are at multiples of this part of a sample; few places make few different spectra."""
CHANGE_COST = 0.1
"""The cost of a change of cycles from latent to latent, beside that of another pitch."""
REACH = 2
"""How many steps of cycles around the right number are tried."""


def free_pulses(pitch: np.ndarray, count: int) -> Pulses:
    """Return the pulses of a pitch in Hz without gaps [frames] over `count` samples."""
    return _pulses(_cycles(pitch, count))


def locked_pulses(pitch: np.ndarray, count: int, per_cycle: int = 1) -> Pulses:
    """Return pulses like `free_pulses`, in the same place in each latent's start.

    The cycles in a latent are a multiple of 1 / `per_cycle`. `count` is a multiple of `LATENT`.
    """
    cycles = _cycles(pitch, count)
    edges = np.arange(0, count + 1, LATENT)
    whole = choose_cycles(np.diff(cycles[edges]), per_cycle)
    return _pulses(_interpolate_cycles(np.concatenate(([0.0], np.cumsum(whole)))))


def choose_cycles(wanted: np.ndarray, per_cycle: int) -> np.ndarray:
    """Return multiples of 1 / `per_cycle` near the `wanted` cycles [n], with few changes.

    A pitch that is rounded latent by latent warbles between two values. So a change costs, too,
    and the cheapest sequence is found by Viterbi's algorithm.
    """
    nearest = np.round(wanted * per_cycle)
    choices = np.maximum(nearest[:, None] + np.arange(-REACH, REACH + 1), 1.0) / per_cycle
    costs = np.square(choices - wanted[:, None])
    best, back = costs[0], []
    for here, previous, cost in zip(choices[1:], choices[:-1], costs[1:], strict=True):
        total = best[:, None] + CHANGE_COST * np.square(here[None] - previous[:, None])
        back.append(total.argmin(0))
        best = total.min(0) + cost
    path = [int(best.argmin())]
    for pointers in reversed(back):
        path.append(int(pointers[path[-1]]))
    return choices[np.arange(len(wanted)), path[::-1]]


def _cycles(pitch: np.ndarray, count: int) -> np.ndarray:
    """Return the cycles that are over at every sample and the end [count + 1]."""
    frame = np.arange(count) / (RATE * FRAME_SECONDS)
    hertz = np.interp(frame, np.arange(len(pitch)), pitch)
    return np.concatenate(([0.0], np.cumsum(hertz / RATE)))


def _interpolate_cycles(at_edges: np.ndarray) -> np.ndarray:
    """Return cycles at every sample from those at the latents' edges; the pitch has no jumps."""
    steps = np.diff(at_edges)
    # The slope at an edge is the harmonic mean of its neighbours', which keeps time going forward.
    inner = 2 / (1 / steps[:-1] + 1 / steps[1:])
    slopes = np.concatenate((steps[:1], inner, steps[-1:]))
    t = np.arange(LATENT) / LATENT
    rise = 3 * t**2 - 2 * t**3
    parts = (
        at_edges[:-1, None]
        + steps[:, None] * rise
        + slopes[:-1, None] * (t**3 - 2 * t**2 + t)
        + slopes[1:, None] * (t**3 - t**2)
    )
    return np.concatenate((parts.ravel(), at_edges[-1:]))


def _pulses(cycles: np.ndarray) -> Pulses:
    """Return a pulse in the middle of every cycle, of the same power at any pitch."""
    middles = np.arange(np.floor(cycles[-1] + 0.5)) + 0.5
    samples = np.arange(len(cycles))
    places = np.round(np.interp(middles, cycles, samples) * PLACES_A_SAMPLE) / PLACES_A_SAMPLE
    places = places[places < len(cycles) - 1]
    intervals = np.interp(middles[: len(places)] + 0.5, cycles, samples)
    intervals -= np.interp(middles[: len(places)] - 0.5, cycles, samples)
    return Pulses(places, np.sqrt(intervals.clip(1.0)))
