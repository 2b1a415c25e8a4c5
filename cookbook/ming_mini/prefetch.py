"""Draw the next batch in a thread while the device works on the current one."""

from collections.abc import Callable
from concurrent.futures import Future, ThreadPoolExecutor
from typing import Generic, TypeVar

Drawn = TypeVar("Drawn")


class Prefetch(Generic[Drawn]):
    """Call `draw` one batch ahead, in one thread; the batches and their order stay the same."""

    def __init__(self, draw: Callable[[], Drawn]) -> None:
        self._draw, self._pool = draw, ThreadPoolExecutor(1)
        self._next: Future[Drawn] = self._pool.submit(draw)

    def draw(self) -> Drawn:
        """Return the batch that was drawn ahead."""
        batch = self._next.result()
        self._next = self._pool.submit(self._draw)
        return batch

    def rest(self) -> None:
        """Wait until nothing is being drawn, so that the tables may change."""
        self._next.exception()
