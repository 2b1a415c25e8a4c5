"""What a listener hears of a stream: playback starts with the first audio and stops where it
has caught up with what arrived."""

from collections.abc import Iterable
from dataclasses import dataclass

# Clocks and floats are not exact; a gap this short is no gap.
TOLERANCE_S = 1e-6


@dataclass(frozen=True)
class Piece:
    """Audio that arrived at `at_s` and plays for `audio_s` seconds."""

    at_s: float
    audio_s: float


@dataclass(frozen=True)
class Playback:
    """How a stream played: how often and for how many seconds in all it ran dry, how many seconds
    of audio it had, and when it ends (None when there was no audio)."""

    underruns: int = 0
    dry_s: float = 0.0
    audio_s: float = 0.0
    ends_at_s: float | None = None

    def then(self, piece: Piece) -> "Playback":
        """The playback with one more piece, which arrived after all others."""
        ends = piece.at_s if self.ends_at_s is None else self.ends_at_s
        late = max(0.0, piece.at_s - ends)
        return Playback(
            self.underruns + (late > TOLERANCE_S),
            self.dry_s + late,
            self.audio_s + piece.audio_s,
            ends + late + piece.audio_s,
        )


def play(pieces: Iterable[Piece]) -> Playback:
    """Play pieces in the order in which they arrived."""
    playback = Playback()
    for piece in pieces:
        playback = playback.then(piece)
    return playback
