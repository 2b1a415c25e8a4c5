"""A clock of events, and a card whose engines take turns."""

import heapq
from collections.abc import Callable
from itertools import count

Action = Callable[[], None]


class Clock:
    """Simulated time in seconds; actions run in the order of their times."""

    def __init__(self) -> None:
        self.now = 0.0
        self._due: list[tuple[float, int, Action]] = []
        self._number = count()

    def after(self, seconds: float, action: Action) -> None:
        """Run an action so many seconds from now."""
        heapq.heappush(self._due, (self.now + seconds, next(self._number), action))

    def run(self, until: float) -> None:
        """Run all actions up to a time."""
        while self._due and self._due[0][0] <= until:
            self.now, _, action = heapq.heappop(self._due)
            action()
        self.now = until


class Card:
    """A card: of n engines that are busy on it, each runs at 1/n of its speed.

    That is what CUDA does with processes that share a card: it gives them slices of time.
    """

    def __init__(self, clock: Clock) -> None:
        self._clock, self._remaining = clock, dict[int, float]()
        self._done: dict[int, Action] = {}
        self._numbers, self._since, self._version = count(), 0.0, 0
        self.busy_s = 0.0

    def run(self, work_s: float, done: Action) -> None:
        """Do work that takes `work_s` on an idle card, then call `done`."""
        self._advance()
        number = next(self._numbers)
        self._remaining[number], self._done[number] = work_s, done
        self._schedule()

    def _advance(self) -> None:
        elapsed, self._since = self._clock.now - self._since, self._clock.now
        if self._remaining:
            self.busy_s += elapsed
            share = elapsed / len(self._remaining)
            self._remaining = {one: left - share for one, left in self._remaining.items()}

    def _schedule(self) -> None:
        self._version += 1
        if self._remaining:
            version = self._version
            wait = max(0.0, min(self._remaining.values()) * len(self._remaining))
            self._clock.after(wait, lambda: self._finish(version))

    def _finish(self, version: int) -> None:
        if version != self._version:
            return
        self._advance()
        first = min(self._remaining, key=self._remaining.__getitem__)
        del self._remaining[first]
        done = self._done.pop(first)
        self._schedule()
        done()
