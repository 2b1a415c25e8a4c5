"""Keeps loud samples below full scale without cutting their tops off."""

import numpy as np

# Samples up to here (-2 dBFS) are not touched.
THRESHOLD = 10 ** (-2 / 20)
# No sample is louder (-1 dBFS, as broadcasters have it for lossy codecs): AAC adds up to 0.75 dB to
# a peak of a loud voice, which so still has room.
CEILING = 10 ** (-1 / 20)
# After a loud peak the gain recovers by 8.7 dB in this time: long against a period of a voice, so
# that the gain hardly moves within one and adds no overtones.
RELEASE_S = 0.2

_ROOM = CEILING - THRESHOLD


class PeakLimiter:
    """Limits one stream of float32 samples, without delay.

    The envelope rises with each louder sample at once and falls exponentially. As long as it is
    below the threshold the gain is exactly 1. Above, the gain takes a sample as loud as the
    envelope onto a curve that leaves the threshold with slope 1 and nears the ceiling. How the
    stream is cut into chunks makes no difference to a single bit.
    """

    def __init__(self, sample_rate: int) -> None:
        """`sample_rate` is in Hz."""
        self._fall = 1 / (RELEASE_S * sample_rate)
        self._position = 0
        # The envelope's logarithm, plus how far it would have fallen since the stream began: as
        # this only ever rises, it is a running maximum.
        self._risen = -np.inf

    def push(self, pcm: np.ndarray) -> np.ndarray:
        """Take finite samples [n]; return as many, of magnitude `CEILING` at most."""
        start, self._position = self._position, self._position + len(pcm)
        quiet = self._risen - start * self._fall <= np.log(THRESHOLD)
        if not pcm.size or (quiet and max(pcm.max(), -pcm.min()) <= THRESHOLD):
            return pcm
        return (pcm * _gain(self._envelope(np.abs(pcm.astype(np.float64)), start))).astype(
            np.float32
        )

    def _envelope(self, level: np.ndarray, start: int) -> np.ndarray:
        """The envelope [n] of magnitudes [n]; exact where it is above the threshold."""
        fallen = np.arange(start, start + len(level)) * self._fall
        # What is below the threshold asks for no gain, so it need not be followed.
        risen = np.where(level > THRESHOLD, np.log(np.maximum(level, THRESHOLD)) + fallen, -np.inf)
        risen[0] = max(risen[0], self._risen)
        np.maximum.accumulate(risen, out=risen)
        self._risen = risen[-1]
        return np.exp(risen - fallen)


def _gain(envelope: np.ndarray) -> np.ndarray:
    """What to multiply samples by under an envelope; float64 [n]."""
    above = np.maximum(envelope, THRESHOLD) - THRESHOLD
    limited = THRESHOLD + _ROOM * above / (_ROOM + above)
    return np.where(above > 0, limited / np.maximum(envelope, THRESHOLD), 1.0)
