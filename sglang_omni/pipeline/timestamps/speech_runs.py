"""Where a fragment has speech and where silence, by the level of its samples."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

FRAME_S = 0.01
# The mean magnitude at which a frame is silent: at most this level, or this share of a loud frame.
QUIET_LEVEL = 1e-3
QUIET_SHARE = 0.02
LOUD_QUANTILE = 0.9
# A shorter silence is the closure of a consonant, a shorter sound is a click.
MIN_SILENCE_S = 0.1
MIN_SPEECH_S = 0.03


@dataclass(frozen=True)
class SpeechRun:
    """Speech without a pause, from `start` to `end` in seconds."""

    start: float
    end: float

    @property
    def seconds(self) -> float:
        """Return its length in seconds."""
        return self.end - self.start


class LevelMeter:
    """Measure the mean magnitude of each frame of `FRAME_S`, chunk by chunk."""

    def __init__(self, sample_rate: int) -> None:
        """Take the sample rate in Hz."""
        self._frame_samples = round(sample_rate * FRAME_S)
        self._rest = np.zeros(0, np.float32)
        self._levels: list[np.ndarray] = []

    def push(self, pcm: np.ndarray) -> None:
        """Take the next samples, float32 [n]."""
        joined = np.concatenate((self._rest, np.abs(pcm)))
        num_whole = len(joined) - len(joined) % self._frame_samples
        self._levels.append(joined[:num_whole].reshape(-1, self._frame_samples).mean(axis=1))
        self._rest = joined[num_whole:]

    def finish(self) -> np.ndarray:
        """Return the level of every whole frame, float32 [frames]."""
        return np.concatenate((np.zeros(0, np.float32), *self._levels))


def find_speech_runs(levels: np.ndarray) -> Sequence[SpeechRun]:
    """Return the runs of speech in frames of `FRAME_S` with these levels [frames], in order."""
    if not levels.size:
        return ()
    threshold = max(QUIET_LEVEL, QUIET_SHARE * float(np.quantile(levels, LOUD_QUANTILE)))
    is_loud = np.concatenate(([False], levels > threshold, [False]))
    edges = np.flatnonzero(np.diff(is_loud)).reshape(-1, 2) * FRAME_S
    runs: list[SpeechRun] = []
    for start, end in edges.tolist():
        if runs and start - runs[-1].end < MIN_SILENCE_S:
            runs[-1] = SpeechRun(runs[-1].start, end)
        else:
            runs.append(SpeechRun(start, end))
    return tuple(run for run in runs if run.end - run.start >= MIN_SPEECH_S)
