"""An in-memory LRU cache of media embeddings."""

from collections import OrderedDict
from dataclasses import dataclass

from sglang_omni.engines.runtime.shared_array import Layout, SharedArray


@dataclass(frozen=True)
class Embedding:
    """Feature rows [tokens, hidden] and the data of their medium that the prompt needs.

    `grid` is the patch grid (time, rows, columns) of an image or video, None for audio. `seconds`
    are the times of a video's frame pairs.
    """

    rows: SharedArray
    layout: Layout
    grid: tuple[int, int, int] | None = None
    seconds: tuple[float, ...] = ()


class EmbeddingCache:
    """Caches up to `max_bytes` of embeddings. With 0 it caches nothing.

    Keys must cover the content and everything that affects its decoding. An evicted embedding stays
    valid for the requests that hold it.
    """

    def __init__(self, max_bytes: int) -> None:
        self._max_bytes = max_bytes
        self._entries: OrderedDict[bytes, Embedding] = OrderedDict()
        self._bytes = self._hits = self._misses = self._evictions = 0

    def get(self, key: bytes) -> Embedding | None:
        """Return the embedding and mark it as most recently used, or return None."""
        if key not in self._entries:
            self._misses += 1
            return None
        self._hits += 1
        self._entries.move_to_end(key)
        return self._entries[key]

    def put(self, key: bytes, embedding: Embedding) -> None:
        """Cache an embedding, evicting older ones. One larger than the budget is not cached."""
        size = embedding.layout.nbytes
        if key in self._entries or size > self._max_bytes:
            return
        while self._bytes + size > self._max_bytes:
            _, oldest = self._entries.popitem(last=False)
            self._bytes -= oldest.layout.nbytes
            self._evictions += 1
        self._entries[key] = embedding
        self._bytes += size

    def counters(self) -> dict[str, float]:
        """Return current sizes, and totals since the start."""
        return {
            "cache_entries": len(self._entries),
            "cache_bytes": self._bytes,
            "cache_hits": self._hits,
            "cache_misses": self._misses,
            "cache_evictions": self._evictions,
        }
