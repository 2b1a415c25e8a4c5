"""How much memory media may hold on their way to an engine, and each tenant of it."""

import weakref
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager

from sglang_omni.engines.runtime.shared_array import SharedArray
from sglang_omni.protocol.errors import Overloaded


class MediaMemory:
    """Counts bytes of decoded media, and of features that wait for the thinker.

    A tenant has at most half of `max_bytes`. What is larger than that is let in where the tenant
    holds nothing else, so that it can be served at all.
    """

    def __init__(self, max_bytes: int) -> None:
        self._max_bytes = max_bytes
        self._held: Counter[str | None] = Counter()

    @property
    def held_bytes(self) -> int:
        """Bytes that are held now, by everybody."""
        return self._held.total()

    def track(self, tenant: str | None, array: SharedArray, nbytes: int) -> None:
        """Count an array until its memory is free. Raises `Overloaded` where it has no room."""
        self._add(tenant, nbytes)
        weakref.finalize(array, self._remove, tenant, nbytes)

    @contextmanager
    def hold(self, tenant: str | None, nbytes: int) -> Iterator[None]:
        """Count bytes during the body. Raises `Overloaded` where they have no room."""
        self._add(tenant, nbytes)
        try:
            yield
        finally:
            self._remove(tenant, nbytes)

    def _add(self, tenant: str | None, nbytes: int) -> None:
        mine = self._held[tenant]
        is_over = mine + nbytes > self._max_bytes // 2 or self.held_bytes + nbytes > self._max_bytes
        if mine and is_over:
            raise Overloaded("media of other requests fill the memory for media")
        self._held[tenant] += nbytes

    def _remove(self, tenant: str | None, nbytes: int) -> None:
        self._held[tenant] -= nbytes
        if not self._held[tenant]:
            del self._held[tenant]
