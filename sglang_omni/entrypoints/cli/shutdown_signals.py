"""Handles the signals that shut the server down, and SIGHUP.

The first SIGINT or SIGTERM requests a graceful shutdown, the second forces it. SIGHUP has two
meanings: a closing terminal requests a shutdown, an operator requests a reload of keys and
certificates. It is a shutdown if the process has lost its terminal.
"""

import asyncio
import os
import signal
from collections.abc import Callable, Coroutine
from typing import Any

SHUTDOWN_SIGNALS = (signal.SIGINT, signal.SIGTERM)


class ShutdownSignals:
    """Context manager that handles Ctrl-C, SIGTERM and SIGHUP for the running event loop.

    A SIGHUP that is not a shutdown calls `reload`. `requested` and `forced` are set by the first
    and the second shutdown signal.
    """

    def __init__(self, reload: Callable[[], None]) -> None:
        self._reload, self._had_terminal = reload, has_terminal()
        # Under nohup the signal is ignored. That must stay so.
        self._handles_sighup = signal.getsignal(signal.SIGHUP) is not signal.SIG_IGN
        self._loop = asyncio.get_running_loop()
        self.requested = asyncio.Event()
        self.forced = asyncio.Event()

    def __enter__(self) -> "ShutdownSignals":
        for number in SHUTDOWN_SIGNALS:
            self._loop.add_signal_handler(number, self._on_shutdown_signal)
        if self._handles_sighup:
            self._loop.add_signal_handler(signal.SIGHUP, self._on_sighup)
        return self

    def __exit__(self, *_: object) -> None:
        for number in SHUTDOWN_SIGNALS:
            self._loop.remove_signal_handler(number)
        if self._handles_sighup:
            self._loop.remove_signal_handler(signal.SIGHUP)

    async def wait_unless_forced(
        self, work: Coroutine[Any, Any, None], timeout_s: float | None = None
    ) -> bool:
        """Wait for `work` until it is done, `timeout_s` has passed, or shutdown is forced.

        Return whether it was done; otherwise it is cancelled. Raises whatever `work` raises.
        """
        working = asyncio.create_task(work)
        forced = asyncio.create_task(self.forced.wait())
        try:
            await asyncio.wait(
                {working, forced}, timeout=timeout_s, return_when=asyncio.FIRST_COMPLETED
            )
        finally:
            for task in (working, forced):
                task.cancel()
            await asyncio.wait({working, forced})
        if working.cancelled():
            return False
        working.result()
        return True

    def _on_shutdown_signal(self) -> None:
        (self.forced if self.requested.is_set() else self.requested).set()

    def _on_sighup(self) -> None:
        if self._had_terminal and not has_terminal():
            self._on_shutdown_signal()
        else:
            self._reload()


def has_terminal() -> bool:
    """Return whether this process has a terminal that is still open."""
    try:
        os.close(os.open("/dev/tty", os.O_RDONLY | os.O_NOCTTY))
    except OSError:
        return False
    return True
