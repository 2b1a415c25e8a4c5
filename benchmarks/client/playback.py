"""Playback of a stream: it starts with the first audio and stops at an underrun."""

from collections.abc import Iterable
from dataclasses import dataclass

# Clocks and floats are not exact; a gap this short is no underrun.
TOLERANCE_S = 1e-6


@dataclass(frozen=True)
class AudioChunk:
    """Audio that arrived at `at_s` and plays for `audio_s` seconds."""

    at_s: float
    audio_s: float


@dataclass(frozen=True)
class Playback:
    """The playback of a stream.

    It has the number of underruns, their total seconds (`dry_s`), the seconds of audio, and when it
    ends (None without audio).
    """

    underruns: int = 0
    dry_s: float = 0.0
    audio_s: float = 0.0
    ends_at_s: float | None = None

    def add(self, chunk: AudioChunk) -> "Playback":
        """Return the playback with one more chunk, which arrived after all others."""
        playback_end_s = chunk.at_s if self.ends_at_s is None else self.ends_at_s
        late = max(0.0, chunk.at_s - playback_end_s)
        return Playback(
            self.underruns + (late > TOLERANCE_S),
            self.dry_s + late,
            self.audio_s + chunk.audio_s,
            playback_end_s + late + chunk.audio_s,
        )


def play_chunks(chunks: Iterable[AudioChunk]) -> Playback:
    """Play chunks in the order in which they arrived."""
    playback = Playback()
    for chunk in chunks:
        playback = playback.add(chunk)
    return playback
