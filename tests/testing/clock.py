"""A clock that jumps from event to event, to replay timed deltas without waiting."""

import asyncio
from collections.abc import AsyncIterator, Sequence
from typing import Any


class FakeClock:
    """One reader waits on it (`wait`), one writer sleeps on it (`sleep_until`)."""

    def __init__(self) -> None:
        self.time = 0.0
        self._writer: tuple[float, asyncio.Event] | None = None

    def now(self) -> float:
        return self.time

    async def sleep_until(self, moment: float) -> None:
        """Suspend the writer until the clock reaches `moment`."""
        event = asyncio.Event()
        self._writer = (moment, event)
        await event.wait()

    async def wait(self, work: "asyncio.Future[Any]", deadline: float | None) -> None:
        """Let `work` run; when it sleeps, jump to the earlier of its alarm and `deadline`."""
        while True:
            for _ in range(5):  # enough turns of the loop for the writer to finish or to sleep
                await asyncio.sleep(0)
            if work.done():
                return
            if self._writer is None or (deadline is not None and deadline < self._writer[0]):
                assert deadline is not None, "nothing will ever happen"
                self.time = max(self.time, deadline)
                return
            moment, event = self._writer
            self._writer, self.time = None, moment
            event.set()


async def timed(
    events: Sequence[tuple[float, str]], end: float, clock: FakeClock
) -> AsyncIterator[str]:
    """Yield each text at its moment; end at `end`. Times are in seconds."""
    for moment, text in events:
        await clock.sleep_until(moment)
        yield text
    await clock.sleep_until(end)
