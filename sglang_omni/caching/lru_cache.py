"""A bounded cache that evicts the least recently used entry."""

from collections import OrderedDict
from collections.abc import Callable
from typing import Generic, TypeVar

K = TypeVar("K")
V = TypeVar("V")


class LruCache(Generic[K, V]):
    """Cache values other than None, bounded by their number and, if given, by their total weight.

    It is not thread-safe: one event loop or one thread owns it.
    """

    def __init__(
        self,
        max_entries: int | None = None,
        max_weight: int | None = None,
        get_weight: Callable[[V], int] = lambda value: 1,
    ) -> None:
        """Take the bounds; None means no bound. `get_weight` returns the weight of a value."""
        self._max_entries, self._max_weight, self._get_weight = max_entries, max_weight, get_weight
        self._entries: OrderedDict[K, V] = OrderedDict()
        self.weight = self.num_evicted = 0

    def __len__(self) -> int:
        return len(self._entries)

    def get(self, key: K) -> V | None:
        """Return a value and mark it as most recently used, or return None."""
        if key in self._entries:
            self._entries.move_to_end(key)
        return self._entries.get(key)

    def peek(self, key: K) -> V | None:
        """Return a value without marking it as used, or return None."""
        return self._entries.get(key)

    def oldest(self) -> tuple[K, V] | None:
        """Return the least recently used entry, or None. It stays in the cache."""
        return next(iter(self._entries.items()), None)

    def put(self, key: K, value: V) -> None:
        """Insert or replace a value as most recently used, and evict entries beyond the bounds.

        A value heavier than the cache evicts all entries, itself included.
        """
        self.pop(key)
        self._entries[key] = value
        self.weight += self._get_weight(value)
        while self._entries and self._is_over():
            _, evicted = self._entries.popitem(last=False)
            self.weight -= self._get_weight(evicted)
            self.num_evicted += 1

    def pop(self, key: K) -> V | None:
        """Remove and return a value, or return None."""
        value = self._entries.pop(key, None)
        if value is not None:
            self.weight -= self._get_weight(value)
        return value

    def _is_over(self) -> bool:
        bounds = ((len(self._entries), self._max_entries), (self.weight, self._max_weight))
        return any(bound is not None and value > bound for value, bound in bounds)
