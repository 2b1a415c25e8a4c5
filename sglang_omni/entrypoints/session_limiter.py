"""A limit on the number of concurrent WebSocket sessions."""

from collections.abc import Callable


class SessionLimiter:
    """Counter of active sessions with a maximum of `limit`. Used by one event loop only."""

    def __init__(self, limit: int) -> None:
        self._limit = limit
        self.num_active = 0

    def acquire(self) -> Callable[[], None] | None:
        """Count a new session and return a function that ends it, or None at the limit."""
        if self.num_active >= self._limit:
            return None
        self.num_active += 1
        return self._release

    def _release(self) -> None:
        self.num_active -= 1
