"""Sample-rate conversion of a whole clip, as the released model does it before its mel."""

import math

import numpy as np

# torchaudio's `Resample` with its defaults: a sinc of six zero crossings under a Hann window.
ZERO_CROSSINGS = 6
ROLLOFF = 0.99


def resample(samples: np.ndarray, source: int, target: int) -> np.ndarray:
    """Bring float32 [samples] from `source` to `target` Hz: ceil(samples * target / source).

    Equal to `torchaudio.transforms.Resample(source, target)`. The output falls into as many phases
    as the reduced target rate; every phase is one filter, moved over the input in steps of the
    reduced source rate. Only the filter's own support is multiplied, so that two rates without a
    common divisor need no more memory or time than others.
    """
    if source == target:
        return samples
    divisor = math.gcd(source, target)
    step, phases = source // divisor, target // divisor
    length = -(-len(samples) * phases // step)
    blocks = -(-length // phases)
    reach = _reach(step, phases)
    padded = np.zeros((blocks + 1) * step + 2 * reach + 2, np.float32)
    padded[reach : reach + len(samples)] = samples
    out = np.empty((blocks, phases), np.float32)
    for phase in range(min(phases, length)):
        first, weights = _filter(phase, step, phases)
        windows = np.lib.stride_tricks.sliding_window_view(padded[first:], len(weights))
        out[:, phase] = windows[::step][:blocks] @ weights
    return out.reshape(-1)[:length]


def _reach(step: int, phases: int) -> int:
    """How many input samples the filter reaches to either side."""
    return math.ceil(ZERO_CROSSINGS * step / (min(step, phases) * ROLLOFF))


def _filter(phase: int, step: int, phases: int) -> tuple[int, np.ndarray]:
    """Where a phase's filter begins in the padded input of a block, and its float32 weights."""
    reach = _reach(step, phases)
    cutoff = min(step, phases) * ROLLOFF
    first = phase * step // phases
    offsets = np.arange(first - reach, first + reach + 2)
    # In zero crossings from the filter's centre; beyond the last there is no filter. The phase is
    # rounded because torchaudio rounds it, which for rates like 44,099 Hz moves the filter.
    time = (offsets / step - float(np.float32(phase / phases))) * cutoff
    time = np.clip(time, -ZERO_CROSSINGS, ZERO_CROSSINGS)
    window = np.cos(time * np.pi / ZERO_CROSSINGS / 2) ** 2
    return first, (np.sinc(time) * window * cutoff / step).astype(np.float32)
