"""Convert the sample rate of a whole clip, as the released model does before its mel."""

import math

import numpy as np

# torchaudio's `Resample` with its defaults: a sinc of six zero crossings under a Hann window.
ZERO_CROSSINGS = 6
ROLLOFF = 0.99


def resample(samples: np.ndarray, source: int, target: int) -> np.ndarray:
    """Resample float32 [n] from `source` to `target` Hz, to [ceil(n * target / source)].

    Equal to `torchaudio.transforms.Resample(source, target)`. The number of output phases is the
    reduced target rate. Each phase has one filter, which moves over the input in steps of the
    reduced source rate. Only the filter's support is multiplied, so rates without a common divisor
    need no more memory or time than others.
    """
    if source == target:
        return samples
    divisor = math.gcd(source, target)
    step, phases = source // divisor, target // divisor
    length = -(-len(samples) * phases // step)
    blocks = -(-length // phases)
    radius = _filter_radius(step, phases)
    padded = np.zeros((blocks + 1) * step + 2 * radius + 2, np.float32)
    padded[radius : radius + len(samples)] = samples
    out = np.empty((blocks, phases), np.float32)
    for phase in range(min(phases, length)):
        first, weights = _phase_filter(phase, step, phases)
        windows = np.lib.stride_tricks.sliding_window_view(padded[first:], len(weights))
        out[:, phase] = windows[::step][:blocks] @ weights
    return out.reshape(-1)[:length]


def _filter_radius(step: int, phases: int) -> int:
    """Return how many input samples the filter covers on either side."""
    return math.ceil(ZERO_CROSSINGS * step / (min(step, phases) * ROLLOFF))


def _phase_filter(phase: int, step: int, phases: int) -> tuple[int, np.ndarray]:
    """Return the start of a phase's filter in a block's padded input, and its float32 weights."""
    radius = _filter_radius(step, phases)
    cutoff = min(step, phases) * ROLLOFF
    first = phase * step // phases
    offsets = np.arange(first - radius, first + radius + 2)
    # In zero crossings from the filter's centre; the filter ends at the last one. The phase is
    # rounded because torchaudio rounds it, which shifts the filter for rates like 44,099 Hz.
    time = (offsets / step - float(np.float32(phase / phases))) * cutoff
    time = np.clip(time, -ZERO_CROSSINGS, ZERO_CROSSINGS)
    window = np.cos(time * np.pi / ZERO_CROSSINGS / 2) ** 2
    return first, (np.sinc(time) * window * cutoff / step).astype(np.float32)
