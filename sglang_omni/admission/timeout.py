"""An end for what takes too long."""

import asyncio
from collections.abc import AsyncGenerator
from contextlib import aclosing
from typing import Any, TypeVar

from sglang_omni.protocol.errors import DeadlineExceeded

T = TypeVar("T")


async def with_timeout(items: AsyncGenerator[T, None], seconds: float) -> AsyncGenerator[T, None]:
    """Pass on what comes within `seconds` of the first request for an item; then raise
    `DeadlineExceeded` and close `items`.

    Time that the reader takes counts, but does not interrupt it.
    """
    alarm = _Alarm(seconds)
    try:
        async with aclosing(items):
            while True:
                try:
                    # Around each item alone: it must never hit the reader of this generator.
                    with alarm:
                        item = await anext(items)
                except StopAsyncIteration:
                    return
                except TimeoutError:
                    raise DeadlineExceeded(f"not done within {round(seconds, 2):g} s") from None
                yield item
    finally:
        alarm.stop()


class _Alarm:
    """What `asyncio.timeout_at` is, for many bodies that share one end: a timer for all of them,
    where items come a thousand times as often as it rings."""

    def __init__(self, seconds: float) -> None:
        self._rang = False
        self._task: asyncio.Task[Any] | None = None
        self._cancelling = 0
        self._timer = asyncio.get_running_loop().call_later(seconds, self._ring)

    def __enter__(self) -> None:
        """A body begins. Raises `TimeoutError` once it is too late."""
        if self._rang:
            raise TimeoutError
        self._task = asyncio.current_task()
        assert self._task is not None
        self._cancelling = self._task.cancelling()

    def __exit__(self, kind: type[BaseException] | None, *_: object) -> None:
        """A body has ended. Raises `TimeoutError` where the alarm has cut it short."""
        task, self._task = self._task, None
        if not self._rang:
            return
        assert task is not None
        # As `asyncio.timeout` tells them apart: others may have cancelled the task as well.
        ours_alone = task.uncancel() <= self._cancelling
        if ours_alone and kind is not None and issubclass(kind, asyncio.CancelledError):
            raise TimeoutError from None

    def stop(self) -> None:
        """It shall not ring any more."""
        self._timer.cancel()

    def _ring(self) -> None:
        self._rang = True
        if self._task is not None:
            self._task.cancel()
