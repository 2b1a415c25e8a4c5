"""The edges of spoken fragments, so that one follows the other without a click or a gap.

Each fragment is synthesised by itself. Its end may be cut in the middle of a sound (the talker's
trimmer drops a last part of less than 0.1 s, and a cap may end it anywhere), and how long the
silence before its first sound is, is up to the model.
"""

import numpy as np

# Too short to be heard as a fade, long enough that no sample steps.
FADE_S = 0.005
# What stays of the silence before a fragment that follows another. The trimmer leaves up to 0.3 s
# at the end of the one before, so that a pause between two is at most 0.4 s.
LEAD_S = 0.1
QUIET_FRAME_S = 0.01
# As the trimmer has it.
QUIET = 1e-3


class SegmentFader:
    """The samples of one fragment, as they come. What follows another fragment begins with a short
    fade and little silence; every fragment ends with a fade."""

    def __init__(self, sample_rate: int, follows: bool) -> None:
        """`sample_rate` is in Hz; `follows` says whether a fragment was spoken before."""
        self._fade = int(sample_rate * FADE_S)
        self._lead = int(sample_rate * LEAD_S)
        self._frame = int(sample_rate * QUIET_FRAME_S)
        self._waits = self._begins = follows
        self._held = np.zeros(0, np.float32)

    def push(self, pcm: np.ndarray, last: bool) -> np.ndarray:
        """Take samples [n] float32, and return those to play. Nothing comes after the `last`."""
        if self._waits:
            pcm = self._without_lead(pcm, last)
        if self._begins and pcm.size:
            pcm, self._begins = _faded(pcm, self._fade), False
        return _faded(pcm[::-1], self._fade)[::-1] if last and pcm.size else pcm

    def _without_lead(self, pcm: np.ndarray, last: bool) -> np.ndarray:
        """Hold silence back until there is sound; then let go of its end alone."""
        self._held = np.concatenate((self._held, pcm))
        loud = self._first_sound(self._held)
        if loud is None and not last:
            # No more can be wanted. Whole frames go, so that chunks make no difference.
            spare = max(0, len(self._held) - self._lead - self._frame) // self._frame
            self._held = self._held[spare * self._frame :]
            return self._held[:0]
        self._waits = False
        return self._held[max(0, (len(self._held) if loud is None else loud) - self._lead) :]

    def _first_sound(self, pcm: np.ndarray) -> int | None:
        """Where the first frame begins that is not quiet."""
        frames = pcm[: len(pcm) // self._frame * self._frame].reshape(-1, self._frame)
        loud = np.flatnonzero(np.abs(frames).mean(axis=1) > QUIET)
        return int(loud[0]) * self._frame if len(loud) else None


def _faded(pcm: np.ndarray, samples: int) -> np.ndarray:
    """`pcm` rising from silence over its first `samples`, or over half of it if it is shorter."""
    count = min(samples, len(pcm) // 2)
    ramp = np.ones(len(pcm), np.float32)
    ramp[:count] = np.linspace(0.0, 1.0, count, endpoint=False, dtype=np.float32)
    return pcm * ramp
