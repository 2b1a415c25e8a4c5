"""Embeddings of media seen before, in memory, least recently used first out."""

from collections import OrderedDict
from dataclasses import dataclass

from sglang_omni.engines.runtime.shared_array import Layout, SharedArray


@dataclass(frozen=True)
class Embedding:
    """Feature rows [tokens, hidden] and what the prompt must know of their medium.

    `grid` is a picture's patches (time, rows, columns), None for a clip; `seconds` are the times
    of a video's frame pairs.
    """

    rows: SharedArray
    layout: Layout
    grid: tuple[int, int, int] | None = None
    seconds: tuple[float, ...] = ()


class EmbeddingCache:
    """Keeps up to `budget` bytes of embeddings. A budget of 0 keeps nothing.

    Keys must cover the content and everything that decides how it is decoded. What was evicted
    lives on for the requests that hold it.
    """

    def __init__(self, budget: int) -> None:
        self._budget = budget
        self._entries: OrderedDict[bytes, Embedding] = OrderedDict()
        self._bytes = self._hits = self._misses = self._evictions = 0

    def get(self, key: bytes) -> Embedding | None:
        """The embedding, which becomes the most recently used, or None."""
        if key not in self._entries:
            self._misses += 1
            return None
        self._hits += 1
        self._entries.move_to_end(key)
        return self._entries[key]

    def put(self, key: bytes, embedding: Embedding) -> None:
        """Keep an embedding, dropping older ones for it; one larger than the budget is not kept."""
        size = embedding.layout.nbytes
        if key in self._entries or size > self._budget:
            return
        while self._bytes + size > self._budget:
            _, oldest = self._entries.popitem(last=False)
            self._bytes -= oldest.layout.nbytes
            self._evictions += 1
        self._entries[key] = embedding
        self._bytes += size

    def counters(self) -> dict[str, float]:
        """What is held now, and totals since the start."""
        return {
            "cache_entries": len(self._entries),
            "cache_bytes": self._bytes,
            "cache_hits": self._hits,
            "cache_misses": self._misses,
            "cache_evictions": self._evictions,
        }
