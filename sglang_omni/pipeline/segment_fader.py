"""Fades at the edges of spoken fragments, so that they join without a click or a long gap.

Each fragment is synthesized separately. It may end in the middle of a sound: the talker's trimmer
drops a last part of less than 0.1 s, and a length limit may end it anywhere. The model decides how
much silence it starts with.
"""

import numpy as np

# Too short to be audible as a fade, long enough to avoid a step between samples.
FADE_S = 0.005
# How much silence is kept at the start of a fragment that follows another one. The trimmer leaves
# up to 0.3 s at the end of a fragment, so a pause between two fragments is at most 0.4 s.
MAX_LEAD_S = 0.1
QUIET_FRAME_S = 0.01
# The mean magnitude below which a frame is silent, as in the trimmer.
QUIET_LEVEL = 1e-3


class SegmentFader:
    """Fade the edges of one fragment, chunk by chunk.

    Every fragment ends with a fade. One that follows another fragment also starts with a fade and
    with at most `MAX_LEAD_S` of silence.
    """

    def __init__(self, sample_rate: int, has_previous: bool) -> None:
        """Take the sample rate in Hz, and whether a fragment was spoken before this one."""
        self._fade_samples = int(sample_rate * FADE_S)
        self._lead_samples = int(sample_rate * MAX_LEAD_S)
        self._frame_samples = int(sample_rate * QUIET_FRAME_S)
        self._trims_lead = self._fades_in = has_previous
        self._pending = np.zeros(0, np.float32)

    def push(self, pcm: np.ndarray, last: bool) -> np.ndarray:
        """Take float32 samples [n] and return those to play. `last` marks the final chunk."""
        if self._trims_lead:
            pcm = self._trim_lead(pcm, last)
        if self._fades_in and pcm.size:
            pcm, self._fades_in = _fade_in(pcm, self._fade_samples), False
        return _fade_in(pcm[::-1], self._fade_samples)[::-1] if last and pcm.size else pcm

    def _trim_lead(self, pcm: np.ndarray, last: bool) -> np.ndarray:
        """Hold silence back until there is sound. Then return only the end of the silence."""
        self._pending = np.concatenate((self._pending, pcm))
        sound_start = self._find_sound(self._pending)
        if sound_start is None and not last:
            # Drop silence beyond the lead. Dropping whole frames makes the result independent of
            # the chunk sizes.
            frame = self._frame_samples
            num_dropped = max(0, len(self._pending) - self._lead_samples - frame) // frame
            self._pending = self._pending[num_dropped * frame :]
            return self._pending[:0]
        self._trims_lead = False
        end = len(self._pending) if sound_start is None else sound_start
        return self._pending[max(0, end - self._lead_samples) :]

    def _find_sound(self, pcm: np.ndarray) -> int | None:
        """Return the start of the first frame that is not silent, or None."""
        frame = self._frame_samples
        frames = pcm[: len(pcm) // frame * frame].reshape(-1, frame)
        loud_frames = np.flatnonzero(np.abs(frames).mean(axis=1) > QUIET_LEVEL)
        return int(loud_frames[0]) * frame if len(loud_frames) else None


def _fade_in(pcm: np.ndarray, samples: int) -> np.ndarray:
    """Fade `pcm` in over its first `samples`, but at most over its first half."""
    count = min(samples, len(pcm) // 2)
    ramp = np.ones(len(pcm), np.float32)
    ramp[:count] = np.linspace(0.0, 1.0, count, endpoint=False, dtype=np.float32)
    return pcm * ramp
