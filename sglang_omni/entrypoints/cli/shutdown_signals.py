"""Signals that end the server, the first asks it to, the second insists; and SIGHUP.

SIGHUP has two senders. A terminal that closes means an end; an operator means that keys and
certificates are to be read again. They are told apart by whether there still is a terminal.
"""

import asyncio
import os
import signal
from collections.abc import Callable, Coroutine
from typing import Any

ENDING = (signal.SIGINT, signal.SIGTERM)


class ShutdownSignals:
    """Takes Ctrl-C, SIGTERM and SIGHUP for the running loop while it is entered. At a SIGHUP that
    does not end the server, `reload` is called."""

    def __init__(self, reload: Callable[[], None]) -> None:
        self._reload, self._had_terminal = reload, has_terminal()
        # nohup has it ignored, and so it stays.
        self._hangs_up = signal.getsignal(signal.SIGHUP) is not signal.SIG_IGN
        self._loop = asyncio.get_running_loop()
        self.asked = asyncio.Event()
        self.insisted = asyncio.Event()

    def __enter__(self) -> "ShutdownSignals":
        for number in ENDING:
            self._loop.add_signal_handler(number, self._hear)
        if self._hangs_up:
            self._loop.add_signal_handler(signal.SIGHUP, self._hang_up)
        return self

    def __exit__(self, *_: object) -> None:
        for number in ENDING:
            self._loop.remove_signal_handler(number)
        if self._hangs_up:
            self._loop.remove_signal_handler(signal.SIGHUP)

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

    def _hang_up(self) -> None:
        if self._had_terminal and not has_terminal():
            self._hear()
        else:
            self._reload()


def has_terminal() -> bool:
    """Return whether this process belongs to a terminal that is still there."""
    try:
        os.close(os.open("/dev/tty", os.O_RDONLY | os.O_NOCTTY))
    except OSError:
        return False
    return True
