"""A limit on the total bytes of all request bodies that the server holds at once."""

import contextlib
from collections.abc import Iterable, Iterator
from tempfile import SpooledTemporaryFile

from sglang_omni.protocol.errors import BodyCapacityReached

# The first bytes of each body are not counted, so large uploads do not block small requests.
FREE_BYTES = 64 << 10
# The part of a form that is kept in memory.
MAX_FORM_MEMORY_BYTES = 1 << 20


class HeldBody:
    """The received part of one body.

    A form is kept on disk, because its files may be long recordings. `size_bytes` counts towards
    the budget until the request ends, even after `take`.
    """

    def __init__(self, *, is_form: bool = False) -> None:
        self._data = bytearray()
        # Closed by `release`.
        self._file = SpooledTemporaryFile(MAX_FORM_MEMORY_BYTES) if is_form else None  # noqa: SIM115
        self.size_bytes = 0
        self.is_complete = self.is_evicted = False

    def append(self, data: bytes) -> None:
        """Add received bytes."""
        if self._file is None:
            self._data += data
        else:
            self._file.write(data)

    def read(self, position: int, size: int) -> bytes:
        """Return at most `size` bytes from `position`; none once the bytes are released."""
        if self._file is None:
            return bytes(self._data[position : position + size])
        if self._file.closed:
            return b""
        self._file.seek(position)
        return self._file.read(size)

    def take(self) -> bytearray:
        """Return the bytes of a body that is no form, and release them from this object."""
        data, self._data = self._data, bytearray()
        return data

    def release(self) -> None:
        """Forget the bytes."""
        self._data = bytearray()
        if self._file is not None:
            self._file.close()

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
    def hold(self, *, is_form: bool = False) -> Iterator[HeldBody]:
        """Yield a new body that counts towards the budget while the block runs."""
        body = HeldBody(is_form=is_form)
        self._bodies.add(body)
        try:
            yield body
        finally:
            body.release()
            self._bodies.discard(body)
            self._counted_bytes -= body.counted_bytes

    def add(self, body: HeldBody, data: bytes) -> None:
        """Append received `data` to `body`.

        Raises:
            BodyCapacityReached: This body has been evicted.
        """
        if not body.is_evicted:
            self._resize(body, body.size_bytes + len(data))
            body.append(data)
            self._evict_over_limit()
        self.check(body)

    def check(self, body: HeldBody) -> None:
        """Raise `BodyCapacityReached` if `body` has been evicted."""
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
            victim.is_evicted = True
            victim.release()
            self._resize(victim, 0)

    def _resize(self, body: HeldBody, size_bytes: int) -> None:
        self._counted_bytes -= body.counted_bytes
        body.size_bytes = size_bytes
        self._counted_bytes += body.counted_bytes


def select_evicted(bodies: Iterable[HeldBody]) -> HeldBody | None:
    """Return the largest incomplete body, or None if there is none."""
    incomplete = (body for body in bodies if not body.is_complete and not body.is_evicted)
    return max(incomplete, key=lambda body: body.size_bytes, default=None)
