"""Combine coroutines and asynchronous streams: gather, tee and merge."""

import asyncio
import sys
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


async def merge(
    *sources: AsyncGenerator[T, None], window: int = MERGE_WINDOW
) -> AsyncGenerator[T, None]:
    """Yield the items of several streams as they arrive, until all streams have ended.

    At most `window` items wait for the reader.

    The first error of a source closes the other sources and is then raised. Closing this generator
    closes every source. No source starts before the first item is requested.
    """
    ready: asyncio.Queue[Any] = asyncio.Queue()
    places = asyncio.Semaphore(window)
    pumps = [asyncio.create_task(_pump(source, ready, places)) for source in sources]
    try:
        num_running = len(pumps)
        while num_running:
            item = await ready.get()
            if isinstance(item, _Ended):
                num_running -= 1
                if item.error is not None:
                    raise item.error
            else:
                places.release()
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


async def run_in_order(
    sources: AsyncGenerator[AsyncGenerator[T, None], None], limit: int
) -> AsyncGenerator[T, None]:
    """Yield the items of streams one stream after the other, while up to `limit` of them run.

    Items of streams that run ahead wait, so a stream should have few. The first error in the order
    of the streams is raised. Closing this generator closes every stream and `sources`.
    """
    running = _RunningStreams[T](limit)
    starter = asyncio.create_task(running.start_all(sources))
    try:
        while (items := await running.started.get()) is not None:
            while not isinstance(item := await items.get(), _Ended):
                yield item
            if item.error is not None:
                raise item.error
            running.places.release()
        await starter  # Raises the error of `sources`.
    finally:
        starter.cancel()
        await asyncio.gather(starter, return_exceptions=True)
        for pump in running.pumps:
            pump.cancel()
        await asyncio.gather(*running.pumps, return_exceptions=True)


class _RunningStreams(Generic[T]):
    """The streams that `run_in_order` has started, each with a queue of its items."""

    def __init__(self, limit: int) -> None:
        self.places = asyncio.Semaphore(limit)
        # None after the last stream.
        self.started: asyncio.Queue[asyncio.Queue[Any] | None] = asyncio.Queue()
        self.pumps: set[asyncio.Task[None]] = set()

    async def start_all(self, sources: AsyncGenerator[AsyncGenerator[T, None], None]) -> None:
        """Start each stream once there is a place."""
        try:
            async with aclosing(sources):
                while True:
                    await self.places.acquire()
                    source = await anext(sources, None)
                    if source is None:
                        return
                    items: asyncio.Queue[Any] = asyncio.Queue()
                    pump = asyncio.create_task(_pump(source, items, asyncio.Semaphore(sys.maxsize)))
                    self.pumps.add(pump)
                    pump.add_done_callback(self.pumps.discard)
                    self.started.put_nowait(items)
        finally:
            self.started.put_nowait(None)
