"""A limit on the total bytes of all request bodies that the server holds at once."""

import contextlib
from collections.abc import Iterable, Iterator

from sglang_omni.protocol.errors import BodyCapacityReached

# The first bytes of each body are not counted, so large uploads do not block small requests.
FREE_BYTES = 64 << 10


class HeldBody:
    """The received part of one body.

    `size_bytes` counts towards the budget until the request ends, even after `take`.
    """

    def __init__(self) -> None:
        self.data = bytearray()
        self.size_bytes = 0
        self.is_complete = self.is_evicted = False

    def take(self) -> bytearray:
        """Return the bytes and release them from this object."""
        data, self.data = self.data, bytearray()
        return data

    @property
    def counted_bytes(self) -> int:
        """Return the bytes that count towards the budget."""
        return max(0, self.size_bytes - FREE_BYTES)


class BodyBudget:
    """Limit on the total size of all bodies, `max_bytes`. Used by the event loop only.

    Over the limit, the largest incomplete body is evicted. So one client with many partly sent
    bodies cannot keep others from sending theirs.
    """

    def __init__(self, max_bytes: int) -> None:
        self._max_bytes = max_bytes
        self._bodies: set[HeldBody] = set()
        self._counted_bytes = 0

    @contextlib.contextmanager
    def hold(self) -> Iterator[HeldBody]:
        """Yield a new body that counts towards the budget while the block runs."""
        body = HeldBody()
        self._bodies.add(body)
        try:
            yield body
        finally:
            self._bodies.discard(body)
            self._counted_bytes -= body.counted_bytes

    def add(self, body: HeldBody, data: bytes) -> None:
        """Append received `data` to `body`.

        Raises:
            BodyCapacityReached: This body has been evicted.
        """
        if not body.is_evicted:
            self._resize(body, body.size_bytes + len(data))
            body.data += data
            self._evict_over_limit()
        if body.is_evicted:
            raise BodyCapacityReached("upload capacity reached; retry later")

    def mark_complete(self, body: HeldBody) -> None:
        """Mark a body as complete. It still counts, but is no longer evicted."""
        body.is_complete = True

    def _evict_over_limit(self) -> None:
        while self._counted_bytes > self._max_bytes:
            victim = select_evicted(self._bodies)
            if victim is None:
                return
            victim.is_evicted, victim.data = True, bytearray()
            self._resize(victim, 0)

    def _resize(self, body: HeldBody, size_bytes: int) -> None:
        self._counted_bytes -= body.counted_bytes
        body.size_bytes = size_bytes
        self._counted_bytes += body.counted_bytes


def select_evicted(bodies: Iterable[HeldBody]) -> HeldBody | None:
    """Return the largest incomplete body, or None if there is none."""
    incomplete = (body for body in bodies if not body.is_complete and not body.is_evicted)
    return max(incomplete, key=lambda body: body.size_bytes, default=None)
