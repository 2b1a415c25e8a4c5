"""Estimates how much of a spoken answer was played, from what was sent and when."""

from dataclasses import dataclass, replace


@dataclass(frozen=True)
class Playback:
    """Playback of one item's audio by the client.

    The client is assumed to play in real time, and to start each piece when it arrives or when the
    one before has ended. Times are in milliseconds of one clock.
    """

    item_id: str
    sent_ms: float = 0.0
    ends_at_ms: float = 0.0
    stopped_at_ms: float | None = None

    def played_ms(self, now_ms: float) -> float:
        """Return how much can have been played by `now_ms`, or by the stop, at most."""
        if self.stopped_at_ms is not None:
            now_ms = min(now_ms, self.stopped_at_ms)
        return self.sent_ms - min(max(self.ends_at_ms - now_ms, 0.0), self.sent_ms)


def record_sent(playback: Playback, duration_ms: float, now_ms: float) -> Playback:
    """Return the playback after `duration_ms` more audio was sent at `now_ms`.

    If the client had played everything before, the new audio starts at `now_ms`.
    """
    return replace(
        playback,
        sent_ms=playback.sent_ms + duration_ms,
        ends_at_ms=max(playback.ends_at_ms, now_ms) + duration_ms,
    )


def mark_stopped(playback: Playback, now_ms: float) -> Playback:
    """Return the playback after the client was told at `now_ms` to stop."""
    if playback.stopped_at_ms is not None:
        return playback
    return replace(playback, stopped_at_ms=now_ms)
