"""Training for a given time: schedules follow from the share of a run's seconds."""

import math
import time
from dataclasses import dataclass, field


@dataclass
class RunClock:
    """Wall time of a run of `seconds`.

    This call takes at most `pause` of it; earlier calls took `before`.
    """

    seconds: float
    pause: float = math.inf
    before: float = 0.0
    _start: float = field(default_factory=time.monotonic)

    @property
    def elapsed(self) -> float:
        """Return the seconds since this call's start."""
        return time.monotonic() - self._start

    @property
    def spent(self) -> float:
        """Return the seconds of the run that are over."""
        return self.before + self.elapsed

    @property
    def progress(self) -> float:
        """Return the share of the run that is over, 0 to 1 and beyond."""
        return self.spent / self.seconds

    @property
    def running(self) -> bool:
        """Return whether this call continues."""
        return self.progress < 1 and self.elapsed < self.pause


@dataclass(frozen=True)
class Rate:
    """A learning rate: linear warm-up over `warm_up` steps, then a cosine from `peak` to `end`."""

    peak: float
    end: float
    warm_up: int = 100

    def at(self, progress: float, step: int) -> float:
        """Return the rate at a share of the run and a step of it."""
        cosine = (1 + math.cos(math.pi * min(progress, 1.0))) / 2
        return (self.end + (self.peak - self.end) * cosine) * min(1.0, (step + 1) / self.warm_up)


@dataclass
class MeanMeter:
    """Running means of named numbers."""

    _sums: dict[str, float] = field(default_factory=dict)
    _count: int = 0

    def add(self, values: dict[str, float]) -> None:
        """Add the numbers of one step."""
        self._count += 1
        for name, value in values.items():
            self._sums[name] = self._sums.get(name, 0.0) + value

    def flush(self) -> dict[str, float]:
        """Return the rounded means since the last flush."""
        means = {name: round(total / self._count, 4) for name, total in self._sums.items()}
        self._sums, self._count = {}, 0
        return means
