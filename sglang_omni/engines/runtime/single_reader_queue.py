"""A queue with one reader, for what passes thousands of times a second."""

import asyncio
from collections import deque
from collections.abc import Callable
from typing import Generic, TypeVar

T = TypeVar("T")


class SingleReaderQueue(Generic[T]):
    """Unbounded, first in, first out. One task may wait in `get` at a time.

    It does half the work of `asyncio.Queue`, which serves any number of readers and writers.
    """

    def __init__(self) -> None:
        self._items: deque[T] = deque()
        self._waiter: asyncio.Future[None] | None = None

    @property
    def waiting(self) -> int:
        """The number of items that nobody has taken yet."""
        return len(self._items)

    def put(self, item: T) -> None:
        """Add an item, and wake the reader."""
        self._items.append(item)
        if self._waiter is not None and not self._waiter.done():
            self._waiter.set_result(None)

    def take_while(self, wanted: Callable[[T], bool]) -> list[T]:
        """Take the oldest items for as long as they are wanted; waits for none."""
        taken: list[T] = []
        while self._items and wanted(self._items[0]):
            taken.append(self._items.popleft())
        return taken

    async def get(self) -> T:
        """Take the oldest item; waits for one. Cancelled while it waits, it takes none."""
        while not self._items:
            self._waiter = asyncio.get_running_loop().create_future()
            await self._waiter
        return self._items.popleft()
