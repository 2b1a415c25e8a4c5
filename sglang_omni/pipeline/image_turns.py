"""Admission of the images of one request, so that they do not compete with each other."""

import asyncio
from collections.abc import AsyncIterator, Callable
from contextlib import AbstractAsyncContextManager, AsyncExitStack, asynccontextmanager

from sglang_omni.engines.runtime.process import Engine
from sglang_omni.protocol.errors import Overloaded


class ImageTurns:
    """Admits the images of one request one after the other.

    At most one of them is in the queue at a time, so several images do not fill a short queue. One
    that is refused while others of the request are drawn waits for them, and is refused only when
    there are none left.
    """

    def __init__(self, admit: Callable[[], AbstractAsyncContextManager[Engine]]) -> None:
        """Take what waits for room for one image, and gives its engine."""
        self._admit = admit
        self._turn = asyncio.Lock()
        self._num_drawn = 0
        self._has_ended = asyncio.Event()

    @asynccontextmanager
    async def admit(self) -> AsyncIterator[Engine]:
        """Wait for room for one image, and hold it during the body. Raises `Overloaded`."""
        place = AsyncExitStack()
        async with self._turn:
            engine = await self._enter(place)
        self._num_drawn += 1
        try:
            async with place:
                yield engine
        finally:
            self._num_drawn -= 1
            self._has_ended.set()

    async def _enter(self, place: AsyncExitStack) -> Engine:
        while True:
            # Before the attempt, so that an end during it counts.
            self._has_ended.clear()
            try:
                return await place.enter_async_context(self._admit())
            except Overloaded:
                if self._num_drawn == 0:
                    raise
            await self._has_ended.wait()
