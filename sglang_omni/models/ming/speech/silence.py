"""Trim the silence around generated speech while it streams.

A model that must speak for a minimum time ends short texts in silence. The trimmer holds silent
frames back until speech follows them: pauses inside speech stay, silence at the end does not.
"""

import numpy as np

FRAME_S = 0.1
MAX_TAIL_S = 0.3
SILENCE_THRESHOLD = 1e-3


class SilenceTrimmer:
    """Streaming silence trimmer of one request, at `sample_rate` Hz.

    A frame of 0.1 s is silent when its mean absolute value is at most 1e-3. Samples are returned in
    whole frames. Silent frames at the end of a push are held until a later frame has speech, which
    releases them all. At the end of the stream at most 0.3 s of silence remain.

    Two rules of the reference are kept. At the end of the stream, a partial frame (less than 0.1 s)
    after the last whole frame with speech is dropped. A stream without any speech returns its first
    0.3 s. One rule is not kept: the reference cuts the held silence at an index into the wrong
    array, which shortens pauses and repeats speech after a chunk of pure silence.
    """

    def __init__(self, sample_rate: int) -> None:
        self._frame = int(sample_rate * FRAME_S)
        self._tail = int(sample_rate * MAX_TAIL_S)
        self._held_silence = _EMPTY
        self._partial = _EMPTY

    def push(self, pcm: np.ndarray, last: bool) -> np.ndarray:
        """Add float32 samples [n], of any n, and return those ready to play, float32 [m]."""
        joined = np.concatenate((self._partial, pcm.astype(np.float32, copy=False)))
        num_whole = len(joined) - len(joined) % self._frame
        frames, self._partial = joined[:num_whole], joined[num_whole:]
        num_spoken = self._count_until_silence(frames)
        if num_spoken == 0:
            return self._hold(frames, last)
        end = min(num_spoken + self._tail, num_whole) if last else num_spoken
        out = np.concatenate((self._held_silence, frames[:end]))
        self._held_silence = frames[end:]
        return out

    def _hold(self, silent: np.ndarray, last: bool) -> np.ndarray:
        """Hold silent frames; at the end of the stream, return the start of what is held."""
        self._held_silence = np.concatenate((self._held_silence, silent))
        if not last:
            return _EMPTY
        return np.concatenate((self._held_silence, self._partial))[: self._tail]

    def _count_until_silence(self, frames: np.ndarray) -> int:
        """Return the number of samples up to the end of the last frame with speech, or 0."""
        level = np.abs(frames).reshape(-1, self._frame).mean(axis=1)
        loud = np.flatnonzero(level > SILENCE_THRESHOLD)
        return 0 if len(loud) == 0 else int(loud[-1] + 1) * self._frame


_EMPTY = np.zeros(0, dtype=np.float32)


def trim_silence(pcm: np.ndarray, sample_rate: int) -> np.ndarray:
    """Trim complete speech [n] in one call, by the streaming rules with one last push."""
    return SilenceTrimmer(sample_rate).push(pcm, last=True)
