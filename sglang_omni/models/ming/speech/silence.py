"""Trim the silence around generated speech, while it streams.

A model that must speak for a minimum time ends short texts in silence. The trimmer holds back
silent frames until speech follows them, so pauses inside speech survive and the end does not.
"""

import numpy as np

FRAME_S = 0.1
MAX_TAIL_S = 0.3
SILENCE_THRESHOLD = 1e-3


class SilenceTrimmer:
    """Streaming silence trimming of one request, at `sample_rate` Hz.

    A frame of 0.1 s is silent when its mean absolute value is at most 1e-3. Samples leave in
    whole frames. Silent frames at the end of a push are held until a later frame speaks, which
    releases them all. At the end at most 0.3 s of silence stay.

    Two rules of the reference are kept: what follows the last whole frame of speech that ends
    in a partial frame (less than 0.1 s) is dropped at the end, and a stream without any speech
    yields its first 0.3 s. One is not: the reference cuts the held silence at an index into the
    wrong array, which shortens pauses, and repeats speech after a chunk of pure silence.
    """

    def __init__(self, sample_rate: int) -> None:
        self._frame = int(sample_rate * FRAME_S)
        self._tail = int(sample_rate * MAX_TAIL_S)
        self._held = _EMPTY
        self._partial = _EMPTY

    def push(self, pcm: np.ndarray, last: bool) -> np.ndarray:
        """Take samples [n] (any n, float32) and return those that may be played, float32 [m]."""
        joined = np.concatenate((self._partial, pcm.astype(np.float32, copy=False)))
        whole = len(joined) - len(joined) % self._frame
        frames, self._partial = joined[:whole], joined[whole:]
        spoken = self._spoken(frames)
        if spoken == 0:
            return self._wait(frames, last)
        end = min(spoken + self._tail, whole) if last else spoken
        out = np.concatenate((self._held, frames[:end]))
        self._held = frames[end:]
        return out

    def _wait(self, silent: np.ndarray, last: bool) -> np.ndarray:
        """Hold silent frames; at the end, let the start of what is held go."""
        self._held = np.concatenate((self._held, silent))
        if not last:
            return _EMPTY
        return np.concatenate((self._held, self._partial))[: self._tail]

    def _spoken(self, frames: np.ndarray) -> int:
        """Samples up to the end of the last frame that is not silent; 0 if all are."""
        level = np.abs(frames).reshape(-1, self._frame).mean(axis=1)
        loud = np.flatnonzero(level > SILENCE_THRESHOLD)
        return 0 if len(loud) == 0 else int(loud[-1] + 1) * self._frame


_EMPTY = np.zeros(0, dtype=np.float32)


def trim_silence(pcm: np.ndarray, sample_rate: int) -> np.ndarray:
    """Trim complete speech [n] in one step: the streaming rule with a single, last push."""
    return SilenceTrimmer(sample_rate).push(pcm, last=True)
