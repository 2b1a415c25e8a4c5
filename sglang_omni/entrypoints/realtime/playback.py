"""What of a spoken answer was sent, and how much of that can have been heard by now."""

from dataclasses import dataclass, replace


@dataclass(frozen=True)
class Playback:
    """The sound of one item at its listener, who plays as fast as time passes, at the earliest
    when it arrives. Times are in milliseconds of one clock."""

    item_id: str
    sent_ms: float = 0.0
    ends_at: float = 0.0
    silenced_at: float | None = None

    def heard_ms(self, now: float) -> float:
        """The most that can have been played at `now`, or when the listener was silenced."""
        if self.silenced_at is not None:
            now = min(now, self.silenced_at)
        return self.sent_ms - min(max(self.ends_at - now, 0.0), self.sent_ms)


def sent(playback: Playback, duration_ms: float, now: float) -> Playback:
    """After more sound left at `now`; behind a gap it is played at once."""
    return replace(
        playback,
        sent_ms=playback.sent_ms + duration_ms,
        ends_at=max(playback.ends_at, now) + duration_ms,
    )


def silenced(playback: Playback, now: float) -> Playback:
    """After the listener was told at `now` to fall silent."""
    return playback if playback.silenced_at is not None else replace(playback, silenced_at=now)
