"""A peak limiter, which keeps loud samples below full scale without clipping."""

import numpy as np

# Samples up to this level (-2 dBFS) are not changed.
THRESHOLD = 10 ** (-2 / 20)
# The maximum output level (-1 dBFS, the broadcast limit for lossy codecs). AAC adds up to 0.75 dB
# to a peak of a loud voice, which still fits.
CEILING = 10 ** (-1 / 20)
# The time in which the gain recovers by 8.7 dB after a peak. It is long compared to a period of a
# voice, so the gain is nearly constant within a period and adds no overtones.
RELEASE_S = 0.2

_HEADROOM = CEILING - THRESHOLD


class PeakLimiter:
    """Limit one stream of float32 samples, without delay.

    The envelope rises at once with each louder sample and falls exponentially. Below the threshold
    the gain is exactly 1. Above it, the gain maps the envelope to a curve that starts at the
    threshold with slope 1 and approaches the ceiling. The output is bitwise independent of how the
    stream is split into chunks.
    """

    def __init__(self, sample_rate: int) -> None:
        """Take the sample rate in Hz."""
        self._fall_per_sample = 1 / (RELEASE_S * sample_rate)
        self._position = 0
        # The logarithm of the envelope plus its fall since the start of the stream. This never
        # falls, so it is a running maximum.
        self._log_envelope = -np.inf

    def push(self, pcm: np.ndarray) -> np.ndarray:
        """Take finite samples [n] and return [n] samples of magnitude `CEILING` at most."""
        start, self._position = self._position, self._position + len(pcm)
        is_quiet = self._log_envelope - start * self._fall_per_sample <= np.log(THRESHOLD)
        if not pcm.size or (is_quiet and max(pcm.max(), -pcm.min()) <= THRESHOLD):
            return pcm
        return (pcm * _gain(self._envelope(np.abs(pcm.astype(np.float64)), start))).astype(
            np.float32
        )

    def _envelope(self, level: np.ndarray, start: int) -> np.ndarray:
        """Return the envelope [n] of magnitudes [n]. It is exact above the threshold."""
        fall = np.arange(start, start + len(level)) * self._fall_per_sample
        # Levels below the threshold have gain 1, so they can be left out.
        log_level = np.log(np.maximum(level, THRESHOLD))
        log_envelope = np.where(level > THRESHOLD, log_level + fall, -np.inf)
        log_envelope[0] = max(log_envelope[0], self._log_envelope)
        np.maximum.accumulate(log_envelope, out=log_envelope)
        self._log_envelope = log_envelope[-1]
        return np.exp(log_envelope - fall)


def _gain(envelope: np.ndarray) -> np.ndarray:
    """Return the gain for an envelope, float64 [n]."""
    above = np.maximum(envelope, THRESHOLD) - THRESHOLD
    limited = THRESHOLD + _HEADROOM * above / (_HEADROOM + above)
    return np.where(above > 0, limited / np.maximum(envelope, THRESHOLD), 1.0)
