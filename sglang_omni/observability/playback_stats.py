"""Playback statistics of speech for a client that plays audio as it arrives. Pure functions."""

from collections.abc import Sequence
from dataclasses import dataclass


@dataclass(frozen=True)
class PlaybackStats:
    """Statistics of the speech of one answer.

    Attributes:
        first_s: Seconds until the first audio.
        audio_s: Seconds of audio.
        underrun_s: Seconds of silence where audio was due.
        rtf: The real-time factor: seconds of generation per second of audio.
    """

    first_s: float
    audio_s: float
    underrun_s: float
    rtf: float


def measure_playback(
    chunks: Sequence[tuple[float, int]], started_at: float, sample_rate: int
) -> PlaybackStats | None:
    """Return the statistics of chunks of speech, None if there are none.

    Args:
        chunks: The time and the number of samples of each chunk.
        started_at: The arrival of the request.
        sample_rate: The sample rate in Hz.
    """
    if not chunks:
        return None
    first_at, last_at = chunks[0][0], chunks[-1][0]
    plays_until = first_at
    underrun_s = 0.0
    for sent_at, num_samples in chunks:
        underrun_s += max(0.0, sent_at - plays_until)
        plays_until = max(plays_until, sent_at) + num_samples / sample_rate
    audio_s = sum(num_samples for _, num_samples in chunks) / sample_rate
    rtf = (last_at - started_at) / audio_s
    return PlaybackStats(first_at - started_at, audio_s, underrun_s, rtf)
