"""How long each phase of an engine's start took. Pure functions of the caller's clock."""

from collections.abc import Iterator
from dataclasses import dataclass, replace
from itertools import pairwise

FIRST_PHASE = "starting the process"
"""Everything before the first progress report: the process, and the imports of its factory."""


@dataclass(frozen=True)
class StartPhase:
    """A phase, by the text of its progress report, and its duration in seconds."""

    name: str
    seconds: float


@dataclass(frozen=True)
class StartTimeline:
    """The phases of one start: names, and when each began, on one monotonic clock."""

    entered: tuple[tuple[str, float], ...]

    @classmethod
    def start(cls, now: float) -> "StartTimeline":
        """Return the timeline of a start that begins now."""
        return cls(((FIRST_PHASE, now),))

    def enter_phase(self, name: str, now: float) -> "StartTimeline":
        """Return the timeline after a progress report."""
        return replace(self, entered=(*self.entered, (name, now)))

    def finish(self, now: float) -> tuple[StartPhase, ...]:
        """Return the phases of a start that ends now."""
        return tuple(self._measure(now))

    def _measure(self, now: float) -> Iterator[StartPhase]:
        for (name, began_at), (_, ended_at) in pairwise((*self.entered, ("", now))):
            yield StartPhase(name, ended_at - began_at)
