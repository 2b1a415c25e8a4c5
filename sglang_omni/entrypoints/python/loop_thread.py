"""An event loop in a thread of its own, for callers without one."""

import asyncio
import threading
from collections.abc import Callable, Coroutine
from typing import Any, TypeVar

import uvloop

from sglang_omni.protocol.errors import EngineUnavailable

T = TypeVar("T")


class LoopThread:
    """A running event loop of uvloop. Its thread does not keep the process alive.

    The kernel kills an engine when the thread that started it ends, so no engine outlives the loop.

    Attributes:
        is_closed: Whether the loop ends or has ended.
    """

    def __init__(self) -> None:
        """Start the thread."""
        self._runner = asyncio.Runner(loop_factory=uvloop.new_event_loop)
        self.is_closed = False
        started = threading.Event()
        self._thread = threading.Thread(
            target=self._run, args=(started,), name="sglang-omni", daemon=True
        )
        self._thread.start()
        started.wait()

    def run(self, coroutine: Coroutine[Any, Any, T]) -> T:
        """Run a coroutine on the loop, and return its result or raise its error.

        If the caller is interrupted, cancel the coroutine and wait for its end.

        Raises:
            EngineUnavailable: The loop is closed.
        """
        tasks: list[asyncio.Task[T]] = []
        done = threading.Event()

        def start() -> None:
            task = self._loop.create_task(coroutine)
            tasks.append(task)
            task.add_done_callback(lambda _: done.set())

        if self.is_closed or not self.call_soon(start):
            coroutine.close()
            raise EngineUnavailable("this object is closed")
        try:
            done.wait()
        except BaseException:
            self.call_soon(lambda: tasks[0].cancel())
            done.wait()
            raise
        if tasks[0].cancelled():
            raise EngineUnavailable("this object was closed")
        return tasks[0].result()

    def call_soon(self, callback: Callable[[], object]) -> bool:
        """Call a function on the loop soon. Return False if the loop is closed."""
        try:
            self._loop.call_soon_threadsafe(callback)
        except RuntimeError:
            return False
        return True

    def close(self) -> None:
        """Cancel what still runs, end the loop, and wait for the thread."""
        self.end()
        if threading.current_thread() is not self._thread:
            self._thread.join()

    def end(self) -> None:
        """End the loop soon, without waiting."""
        self.is_closed = True
        self.call_soon(self._ended.set)

    def _run(self, started: threading.Event) -> None:
        with self._runner as runner:
            self._loop = runner.get_loop()
            self._ended = asyncio.Event()
            self._loop.call_soon(started.set)
            runner.run(self._wait())

    async def _wait(self) -> None:
        await self._ended.wait()
