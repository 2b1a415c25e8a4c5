"""Deadlines for the phases of an engine's start. Pure functions of the caller's clock."""

from dataclasses import dataclass, replace


@dataclass(frozen=True)
class StartDeadlines:
    """The deadlines of one start; all times in seconds.

    The start may take `total_s`, each phase `phase_s`, and a pause without messages `silence_s`.
    `started_at`, `phase_started_at` and `last_message_at` are on one monotonic clock.
    """

    total_s: float
    phase_s: float
    silence_s: float
    started_at: float
    phase_started_at: float
    last_message_at: float
    phase: str = ""

    @classmethod
    def start(
        cls, now: float, total_s: float, phase_s: float, silence_s: float
    ) -> "StartDeadlines":
        """Return the deadlines of a start that begins now."""
        return cls(total_s, phase_s, silence_s, now, now, now)

    def enter_phase(self, phase: str, now: float) -> "StartDeadlines":
        """Return the deadlines after a progress report."""
        return replace(self, phase=phase, phase_started_at=now, last_message_at=now)

    def record_message(self, now: float) -> "StartDeadlines":
        """Return the deadlines after any other message."""
        return replace(self, last_message_at=now)

    def next_deadline(self) -> float:
        """Return the time of the earliest deadline."""
        return min(self._deadlines())

    def describe(self) -> str:
        """Return the reason for the earliest deadline, which continues the engine's name."""
        return self._deadlines()[self.next_deadline()]

    def _deadlines(self) -> dict[float, str]:
        last = f" (last progress: {self.phase})" if self.phase else ""
        phase = f"on {self.phase!r}" if self.phase else "before its first progress report"
        return {
            self.last_message_at
            + self.silence_s: f"sent no heartbeat for {self.silence_s:g} s{last}",
            self.phase_started_at + self.phase_s: f"spent more than {self.phase_s:g} s {phase}",
            self.started_at + self.total_s: f"was not ready within {self.total_s:g} s{last}",
        }
