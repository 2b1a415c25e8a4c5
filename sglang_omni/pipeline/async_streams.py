"""Combine coroutines and asynchronous streams: gather, tee and merge."""

import asyncio
from collections.abc import AsyncGenerator, Coroutine, Iterable
from contextlib import aclosing
from typing import Any, Generic, TypeVar

T = TypeVar("T")

_END: Any = object()

# How many items of a merged stream may wait for its reader.
MERGE_WINDOW = 8


async def gather_or_cancel(work: Iterable[Coroutine[Any, Any, T]]) -> list[T]:
    """Run coroutines concurrently and return their results in order.

    The first error cancels the other coroutines and is then raised. Cancelling this coroutine
    cancels all of them.
    """
    tasks = [asyncio.ensure_future(coroutine) for coroutine in work]
    try:
        return await asyncio.gather(*tasks)
    finally:
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)


class Tee(Generic[T]):
    """Copy a stream for a second reader while the first reader drives it.

    The copy is not bounded: the second reader may fall behind without slowing the first.
    """

    def __init__(self, source: AsyncGenerator[T, None]) -> None:
        self._source = source
        self._copies: asyncio.Queue[Any] = asyncio.Queue()

    async def read(self) -> AsyncGenerator[T, None]:
        """Yield the items of the source. Reading them fills the copy."""
        try:
            async with aclosing(self._source) as source:
                async for item in source:
                    self._copies.put_nowait(item)
                    yield item
        finally:
            self._copies.put_nowait(_END)

    async def read_copy(self) -> AsyncGenerator[T, None]:
        """Yield the copied items. The copy ends where the first reader stopped."""
        while (item := await self._copies.get()) is not _END:
            yield item


async def merge(*sources: AsyncGenerator[T, None]) -> AsyncGenerator[T, None]:
    """Yield the items of several streams as they arrive, until all streams have ended.

    The first error of a source closes the other sources and is then raised. Closing this generator
    closes every source. No source starts before the first item is requested.
    """
    ready: asyncio.Queue[Any] = asyncio.Queue()
    window = asyncio.Semaphore(MERGE_WINDOW)
    pumps = [asyncio.create_task(_pump(source, ready, window)) for source in sources]
    try:
        num_running = len(pumps)
        while num_running:
            item = await ready.get()
            if isinstance(item, _Ended):
                num_running -= 1
                if item.error is not None:
                    raise item.error
            else:
                window.release()
                yield item
    finally:
        for pump in pumps:
            pump.cancel()
        await asyncio.gather(*pumps, return_exceptions=True)


class _Ended:
    """The end of one source, with the error that ended it, if any."""

    def __init__(self, error: BaseException | None) -> None:
        self.error = error


async def _pump(
    source: AsyncGenerator[T, None], ready: "asyncio.Queue[Any]", window: asyncio.Semaphore
) -> None:
    """Move the items of `source` to `ready` while `window` allows.

    The end of the source takes no place in the window. Otherwise a source that fails while it is
    closed would wait for a reader that has left.
    """
    error: BaseException | None = None
    try:
        async with aclosing(source) as items:
            async for item in items:
                await window.acquire()
                ready.put_nowait(item)
    except (Exception, asyncio.CancelledError) as caught:
        # A source that cancels itself has ended too, and the reader must learn of it.
        error = caught
    ready.put_nowait(_Ended(error))
