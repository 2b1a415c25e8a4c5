"""An in-memory LRU cache of media embeddings."""

from dataclasses import dataclass

from sglang_omni.caching.lru_cache import LruCache
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
        self._entries: LruCache[bytes, Embedding] = LruCache(
            max_weight=max_bytes, get_weight=lambda embedding: embedding.layout.nbytes
        )
        self._hits = self._misses = 0

    def get(self, key: bytes) -> Embedding | None:
        """Return the embedding and mark it as most recently used, or return None."""
        embedding = self._entries.get(key)
        self._hits += embedding is not None
        self._misses += embedding is None
        return embedding

    def put(self, key: bytes, embedding: Embedding) -> None:
        """Cache an embedding, evicting older ones. One larger than the budget is not cached."""
        is_cached = self._entries.peek(key) is not None
        if not is_cached and embedding.layout.nbytes <= self._max_bytes:
            self._entries.put(key, embedding)

    def counters(self) -> dict[str, float]:
        """Return current sizes, and totals since the start."""
        return {
            "cache_entries": len(self._entries),
            "cache_bytes": self._entries.weight,
            "cache_hits": self._hits,
            "cache_misses": self._misses,
            "cache_evictions": self._entries.num_evicted,
        }
