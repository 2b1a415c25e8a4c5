"""A limit for the bytes of all request bodies that the server holds at once."""

import contextlib
from collections.abc import Iterable, Iterator

from sglang_omni.protocol.errors import BodyCapacityReached

# So much of every body is not counted: small requests are served whatever others upload.
FREE_BYTES = 64 << 10


class HeldBody:
    """One body, as far as it has arrived. `size` is what it counts for until its request ends, also
    once `take` has handed its bytes over."""

    def __init__(self) -> None:
        self.data = bytearray()
        self.size = 0
        self.is_whole = self.is_evicted = False

    def take(self) -> bytearray:
        """Return the bytes, which are kept here no longer."""
        data, self.data = self.data, bytearray()
        return data

    @property
    def counted(self) -> int:
        """Bytes that count towards the budget."""
        return max(0, self.size - FREE_BYTES)


class BodyBudget:
    """Holds bodies of at most `max_bytes` together. Owned by the event loop.

    Beyond that the largest body that is still arriving is given up, so that one client with many
    half-sent bodies cannot keep others from sending theirs.
    """

    def __init__(self, max_bytes: int) -> None:
        self._max_bytes = max_bytes
        self._bodies: set[HeldBody] = set()
        self._counted = 0

    @contextlib.contextmanager
    def hold(self) -> Iterator[HeldBody]:
        """While the block runs, count the body that it reads."""
        body = HeldBody()
        self._bodies.add(body)
        try:
            yield body
        finally:
            self._bodies.discard(body)
            self._counted -= body.counted

    def add(self, body: HeldBody, data: bytes) -> None:
        """Append what has arrived of `body`.

        Raises `BodyCapacityReached` where this body is, or has been, given up for others.
        """
        if not body.is_evicted:
            self._resize(body, body.size + len(data))
            body.data += data
            self._make_room()
        if body.is_evicted:
            raise BodyCapacityReached("the server holds as many uploads as it can; retry later")

    def finish(self, body: HeldBody) -> None:
        """Note that a body has arrived whole; it counts on, and is not given up any more."""
        body.is_whole = True

    def _make_room(self) -> None:
        while self._counted > self._max_bytes:
            victim = select_evicted(self._bodies)
            if victim is None:
                return
            victim.is_evicted, victim.data = True, bytearray()
            self._resize(victim, 0)

    def _resize(self, body: HeldBody, size: int) -> None:
        self._counted -= body.counted
        body.size = size
        self._counted += body.counted


def select_evicted(bodies: Iterable[HeldBody]) -> HeldBody | None:
    """Return the largest of the bodies that are still arriving, None if there are none."""
    arriving = (body for body in bodies if not body.is_whole and not body.is_evicted)
    return max(arriving, key=lambda body: body.size, default=None)
