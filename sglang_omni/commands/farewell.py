"""Signals that end the server: the first asks it to, the second insists."""

import asyncio
import signal
from collections.abc import Coroutine
from typing import Any

ENDING = (signal.SIGINT, signal.SIGTERM)


class Farewell:
    """Takes Ctrl-C and SIGTERM for the running loop while it is entered."""

    def __init__(self) -> None:
        self._loop = asyncio.get_running_loop()
        self.asked = asyncio.Event()
        self.insisted = asyncio.Event()

    def __enter__(self) -> "Farewell":
        for number in ENDING:
            self._loop.add_signal_handler(number, self._hear)
        return self

    def __exit__(self, *_: object) -> None:
        for number in ENDING:
            self._loop.remove_signal_handler(number)

    async def until_insisted(
        self, work: Coroutine[Any, Any, None], seconds: float | None = None
    ) -> bool:
        """Wait for `work`, for `seconds` at most, but no longer once insisted.

        Returns whether it was done; if not, it is cancelled. Raises what it raises.
        """
        working = asyncio.create_task(work)
        insisted = asyncio.create_task(self.insisted.wait())
        try:
            await asyncio.wait(
                {working, insisted}, timeout=seconds, return_when=asyncio.FIRST_COMPLETED
            )
        finally:
            for task in (working, insisted):
                task.cancel()
            await asyncio.wait({working, insisted})
        if working.cancelled():
            return False
        working.result()
        return True

    def _hear(self) -> None:
        (self.insisted if self.asked.is_set() else self.asked).set()
