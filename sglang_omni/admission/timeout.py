"""A time limit for an asynchronous stream."""

import asyncio
from collections.abc import AsyncGenerator
from contextlib import aclosing
from typing import Any, TypeVar

from sglang_omni.protocol.errors import DeadlineExceeded

T = TypeVar("T")


async def with_timeout(items: AsyncGenerator[T, None], seconds: float) -> AsyncGenerator[T, None]:
    """Yield the items that arrive within `seconds` of the first read.

    Then raise `DeadlineExceeded` and close `items`. The reader's own time counts, but the reader
    is not interrupted.
    """
    timeout = _SharedTimeout(seconds)
    try:
        async with aclosing(items):
            while True:
                try:
                    # Only around each read: the timeout must not cancel this generator's reader.
                    with timeout:
                        item = await anext(items)
                except StopAsyncIteration:
                    return
                except TimeoutError:
                    raise DeadlineExceeded(
                        f"the request took longer than {round(seconds, 2):g} s"
                    ) from None
                yield item
    finally:
        timeout.stop()


class _SharedTimeout:
    """Like `asyncio.timeout_at`, but one timer serves many bodies with the same deadline.

    A timer for each item would cost too much: most streams have many items and never time out.
    """

    def __init__(self, seconds: float) -> None:
        self._has_fired = False
        self._task: asyncio.Task[Any] | None = None
        self._cancelling = 0
        self._timer = asyncio.get_running_loop().call_later(seconds, self._fire)

    def __enter__(self) -> None:
        """Start a body. Raises `TimeoutError` after the deadline."""
        if self._has_fired:
            raise TimeoutError
        self._task = asyncio.current_task()
        assert self._task is not None
        self._cancelling = self._task.cancelling()

    def __exit__(self, kind: type[BaseException] | None, *_: object) -> None:
        """End a body. Raises `TimeoutError` if the timeout cancelled it."""
        task, self._task = self._task, None
        if not self._has_fired:
            return
        assert task is not None
        # As in `asyncio.timeout`: others may have cancelled the task as well.
        is_only_ours = task.uncancel() <= self._cancelling
        if is_only_ours and kind is not None and issubclass(kind, asyncio.CancelledError):
            raise TimeoutError from None

    def stop(self) -> None:
        """Cancel the timer."""
        self._timer.cancel()

    def _fire(self) -> None:
        self._has_fired = True
        if self._task is not None:
            self._task.cancel()
