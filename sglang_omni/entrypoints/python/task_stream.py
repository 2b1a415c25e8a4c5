"""A stream whose request runs in a task of its own."""

import asyncio
from collections.abc import AsyncGenerator
from contextlib import aclosing
from dataclasses import dataclass
from typing import Generic, TypeVar

T = TypeVar("T")


@dataclass(frozen=True)
class _End:
    """The end of a stream, with the error that ended it."""

    error: Exception | None = None


class TaskStream(Generic[T]):
    """The items of one request, for one reader.

    The request starts with the first read, and is at most two items ahead of the reader. It is
    aborted when the stream is closed or is no longer referenced. One task runs the whole request,
    whichever tasks read it.
    """

    def __init__(self, items: AsyncGenerator[T, None]) -> None:
        """Take the items, which nobody else may read."""
        self._items = items
        self._queue: asyncio.Queue[T | _End] = asyncio.Queue(maxsize=1)
        self._task: asyncio.Task[None] | None = None
        self._loop: asyncio.AbstractEventLoop | None = None
        self._end: _End | None = None

    def __aiter__(self) -> "TaskStream[T]":
        return self

    async def __anext__(self) -> T:
        """Return the next item. Raises the error of the request."""
        if self._end is None and self._task is None:
            self._loop = asyncio.get_running_loop()
            # The task must not reference this object, or it would never be collected.
            self._task = self._loop.create_task(_run(self._items, self._queue))
        if self._end is None:
            item = await self._queue.get()
            if not isinstance(item, _End):
                return item
            self._end = self._end or item
        end, self._end = self._end, _End()
        if end.error is not None:
            raise end.error
        raise StopAsyncIteration

    async def aclose(self, error: Exception | None = None) -> None:
        """Abort the request. A later or waiting read raises `error`, or ends."""
        if self._end is None:
            self._end = _End(error)
        if self._task is None:
            await self._items.aclose()
            return
        self._task.cancel()
        await asyncio.wait({self._task})
        if self._queue.empty():
            # Wakes a reader that waits.
            self._queue.put_nowait(self._end)

    def __del__(self) -> None:
        """Abort the request, from whichever thread drops the last reference."""
        if self._task is not None and not self._task.done():
            assert self._loop is not None
            if not self._loop.is_closed():
                self._loop.call_soon_threadsafe(self._task.cancel)


async def _run(items: AsyncGenerator[T, None], queue: asyncio.Queue[T | _End]) -> None:
    """Put all items into the queue, then the end."""
    error: Exception | None = None
    try:
        async with aclosing(items):
            async for item in items:
                await queue.put(item)
    except Exception as failure:
        error = failure
    await queue.put(_End(error))
