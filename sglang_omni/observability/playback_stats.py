"""How speech would have been heard by a listener who plays it as it comes. Pure functions."""

from collections.abc import Sequence
from dataclasses import dataclass


@dataclass(frozen=True)
class PlaybackStats:
    """Of one answer: seconds until the first sound, of sound, of silence where sound was due, and
    of making per second of sound (the real-time factor)."""

    first_s: float
    audio_s: float
    underrun_s: float
    rtf: float


def heard(audio: Sequence[tuple[float, int]], began: float, rate: int) -> PlaybackStats | None:
    """What came of pieces of speech, each a time and a number of samples at `rate` Hz; None of
    none. `started_at` is when the request came."""
    if not audio:
        return None
    plays_until = audio[0][0]
    underrun_s = 0.0
    for at, samples in audio:
        underrun_s += max(0.0, at - plays_until)
        plays_until = max(plays_until, at) + samples / rate
    audio_s = sum(samples for _, samples in audio) / rate
    return PlaybackStats(audio[0][0] - began, audio_s, underrun_s, (audio[-1][0] - began) / audio_s)
