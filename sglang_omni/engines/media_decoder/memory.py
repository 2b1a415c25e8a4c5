"""Limit the memory of media on their way to an engine, in total and per tenant."""

import weakref
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager

from sglang_omni.engines.runtime.shared_array import SharedArray
from sglang_omni.protocol.errors import Overloaded


class MediaMemory:
    """Count the bytes of decoded media and of features that wait for the thinker.

    A tenant may use at most half of `max_bytes`. A larger item is accepted if the tenant has no
    other, because otherwise it could never be served.
    """

    def __init__(self, max_bytes: int) -> None:
        self._max_bytes = max_bytes
        self._held: Counter[str | None] = Counter()

    @property
    def held_bytes(self) -> int:
        """Return the bytes that all tenants hold now."""
        return self._held.total()

    def track(self, tenant: str | None, array: SharedArray, nbytes: int) -> None:
        """Count an array until it is garbage-collected. Raises `Overloaded` above the limit."""
        self._add(tenant, nbytes)
        weakref.finalize(array, self._remove, tenant, nbytes)

    @contextmanager
    def hold(self, tenant: str | None, nbytes: int) -> Iterator[None]:
        """Count bytes during the body. Raises `Overloaded` above the limit."""
        self._add(tenant, nbytes)
        try:
            yield
        finally:
            self._remove(tenant, nbytes)

    def _add(self, tenant: str | None, nbytes: int) -> None:
        tenant_bytes = self._held[tenant] + nbytes
        is_over = tenant_bytes > self._max_bytes // 2 or self.held_bytes + nbytes > self._max_bytes
        if self._held[tenant] and is_over:
            raise Overloaded("other requests use all memory for media; retry later")
        self._held[tenant] += nbytes

    def _remove(self, tenant: str | None, nbytes: int) -> None:
        self._held[tenant] -= nbytes
        if not self._held[tenant]:
            del self._held[tenant]
