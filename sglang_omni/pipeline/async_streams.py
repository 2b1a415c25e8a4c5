"""Joining asynchronous work: results awaited together, one source with two readers, two sources
with one reader."""

import asyncio
from collections.abc import AsyncGenerator, Coroutine, Iterable
from contextlib import aclosing
from typing import Any, Generic, TypeVar

T = TypeVar("T")

_END: Any = object()

# Outputs that may wait for the reader of a merged stream.
MERGE_WINDOW = 8


async def gather_or_cancel(work: Iterable[Coroutine[Any, Any, T]]) -> list[T]:
    """Results of several coroutines run at once, in order.

    The first error is raised, after the others were cancelled; so are all when this is cancelled.
    """
    tasks = [asyncio.ensure_future(one) for one in work]
    try:
        return await asyncio.gather(*tasks)
    finally:
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)


class Tee(Generic[T]):
    """Copies a stream for a second reader while the first one drives it.

    The copy is not bounded: the second reader may fall behind without slowing the first.
    """

    def __init__(self, source: AsyncGenerator[T, None]) -> None:
        self._source = source
        self._copies: asyncio.Queue[Any] = asyncio.Queue()

    async def first(self) -> AsyncGenerator[T, None]:
        """The stream itself; reading it fills the copy."""
        try:
            async with aclosing(self._source) as source:
                async for item in source:
                    self._copies.put_nowait(item)
                    yield item
        finally:
            self._copies.put_nowait(_END)

    async def second(self) -> AsyncGenerator[T, None]:
        """The copy; it ends where the first reader's stream ended."""
        while (item := await self._copies.get()) is not _END:
            yield item


async def chain(first: T, rest: AsyncGenerator[T, None]) -> AsyncGenerator[T, None]:
    """Put `first` in front of a stream. Closing this generator closes `rest`."""
    async with aclosing(rest):
        yield first
        async for item in rest:
            yield item


async def merge(*sources: AsyncGenerator[T, None]) -> AsyncGenerator[T, None]:
    """Items of several streams as they come; ends when all have ended.

    The first error of a source is raised here, after the others were closed. Closing this
    generator closes every source; before its first item was asked for, no source has begun.
    """
    ready: asyncio.Queue[Any] = asyncio.Queue()
    room = asyncio.Semaphore(MERGE_WINDOW)
    pumps = [asyncio.create_task(_pump(source, ready, room)) for source in sources]
    try:
        running = len(pumps)
        while running:
            item = await ready.get()
            if isinstance(item, _Ended):
                running -= 1
                if item.error is not None:
                    raise item.error
            else:
                room.release()
                yield item
    finally:
        for pump in pumps:
            pump.cancel()
        await asyncio.gather(*pumps, return_exceptions=True)


class _Ended:
    """The end of one source, with what ended it."""

    def __init__(self, error: BaseException | None) -> None:
        self.error = error


async def _pump(
    source: AsyncGenerator[T, None], ready: "asyncio.Queue[Any]", room: asyncio.Semaphore
) -> None:
    """Hand the items of `source` over while there is room. Its end needs none, so that a source
    that fails while it is closed does not wait for a reader that has left."""
    error: BaseException | None = None
    try:
        async with aclosing(source) as items:
            async for item in items:
                await room.acquire()
                ready.put_nowait(item)
    except (Exception, asyncio.CancelledError) as caught:
        # A source that cancels itself ends as well, and the reader must hear of it.
        error = caught
    ready.put_nowait(_Ended(error))
