"""How long each part of an engine's start may take. Pure, but for the caller's clock."""

from dataclasses import dataclass, replace


@dataclass(frozen=True)
class StartWatch:
    """The deadlines of one start; all times in seconds.

    The whole start may take `whole_s`, any one phase `phase_s`, and no silence may be longer than
    `silence_s`. `started_at`, `phase_began` and `last_heard` are on one monotonic clock.
    """

    whole_s: float
    phase_s: float
    silence_s: float
    started_at: float
    phase_began: float
    last_heard: float
    phase: str = ""

    @classmethod
    def at(cls, now: float, whole_s: float, phase_s: float, silence_s: float) -> "StartWatch":
        """The watch of a start that begins now."""
        return cls(whole_s, phase_s, silence_s, now, now, now)

    def entered(self, phase: str, now: float) -> "StartWatch":
        """The engine says what it does next."""
        return replace(self, phase=phase, phase_began=now, last_heard=now)

    def heard(self, now: float) -> "StartWatch":
        """The engine gave a sign of life."""
        return replace(self, last_heard=now)

    def ends(self) -> float:
        """When the soonest of the deadlines runs out."""
        return min(self._deadlines())

    def reason(self) -> str:
        """What the soonest deadline says of the engine, as the end of a sentence."""
        return self._deadlines()[self.ends()]

    def _deadlines(self) -> dict[float, str]:
        seen = f" (last seen: {self.phase})" if self.phase else ""
        phase = f"on {self.phase!r}" if self.phase else "before it said what it does"
        return {
            self.last_heard
            + self.silence_s: f"gave no sign of life for {self.silence_s:g} s{seen}",
            self.phase_began + self.phase_s: f"spent more than {self.phase_s:g} s {phase}",
            self.started_at + self.whole_s: f"was not ready within {self.whole_s:g} s{seen}",
        }
