"""A bound on how many WebSocket sessions of a kind there are."""

from collections.abc import Callable


class SessionLimiter:
    """How many sessions there are. Taken and left on one event loop."""

    def __init__(self, limit: int) -> None:
        self._limit = limit
        self.taken = 0

    def take(self) -> Callable[[], None] | None:
        """A function that gives the seat back, or None if there is no seat."""
        if self.taken >= self._limit:
            return None
        self.taken += 1
        return self._leave

    def _leave(self) -> None:
        self.taken -= 1
