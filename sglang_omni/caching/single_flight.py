"""Share one run of asynchronous work between concurrent callers."""

import asyncio
from collections.abc import Callable, Coroutine
from typing import Any, Generic, TypeVar

K = TypeVar("K")
T = TypeVar("T")


class _Flight(Generic[T]):
    """One run, the number of callers that wait for it, and whether it runs on without callers."""

    def __init__(self, task: "asyncio.Task[T]") -> None:
        self.task = task
        self.num_callers = 0
        self.keeps_running = False


class SingleFlight(Generic[K, T]):
    """Run work once for all concurrent callers of the same key. Owned by one event loop.

    Cancelling one caller does not affect the others. When the last caller goes, the work is
    cancelled.
    """

    def __init__(self) -> None:
        self._flights: dict[K, _Flight[T]] = {}

    def __contains__(self, key: K) -> bool:
        return key in self._flights

    async def run(self, key: K, start: Callable[[], Coroutine[Any, Any, T]]) -> T:
        """Return the result of the work in progress for `key`, or start it. Raises its errors."""
        flight = self._flights.get(key)
        if flight is None:
            flight = self._flights[key] = _Flight(asyncio.create_task(start()))
        flight.num_callers += 1
        try:
            # Shielded, so that cancelling this caller does not cancel the others.
            return await asyncio.shield(flight.task)
        finally:
            flight.num_callers -= 1
            if not flight.num_callers and not (flight.keeps_running and not flight.task.done()):
                self._flights.pop(key, None)
                flight.task.cancel()

    def keep_running(self, key: K) -> None:
        """Let the work in progress for `key` finish even if its last caller goes.

        Later callers of the key still join it.
        """
        flight = self._flights[key]
        flight.keeps_running = True
        flight.task.add_done_callback(lambda task: self._end(key, flight))

    def _end(self, key: K, flight: _Flight[T]) -> None:
        if not flight.num_callers and self._flights.get(key) is flight:
            del self._flights[key]
        if not flight.task.cancelled():
            flight.task.exception()  # Without callers nobody else retrieves it.
