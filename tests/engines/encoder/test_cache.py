"""The cache of embeddings: keyed, bounded in bytes, least recently used first out."""

import numpy as np

from sglang_omni.engines.encoder.cache import Embedding, EmbeddingCache
from sglang_omni.engines.runtime.shared_array import SharedArray

ROW_BYTES = 4 * 8


def embedding(rows: int = 1) -> Embedding:
    array = SharedArray()
    return Embedding(array, array.write(np.zeros((rows, 8), np.float32)))


def test_what_was_put_is_found_by_its_key_alone() -> None:
    cache, kept = EmbeddingCache(10 * ROW_BYTES), embedding()
    cache.put(b"a", kept)
    assert cache.get(b"a") is kept
    assert cache.get(b"b") is None
    counters = cache.counters()
    assert (counters["cache_hits"], counters["cache_misses"]) == (1, 1)


def test_the_budget_is_in_bytes_and_the_least_recently_used_goes_first() -> None:
    cache = EmbeddingCache(4 * ROW_BYTES)
    for key, rows in ((b"a", 1), (b"b", 1), (b"c", 2)):
        cache.put(key, embedding(rows))
    assert cache.get(b"a")
    cache.put(b"d", embedding(1))
    assert [key for key in (b"a", b"b", b"c", b"d") if cache.get(key)] == [b"a", b"c", b"d"]
    cache.put(b"e", embedding(4))
    counters = cache.counters()
    assert (counters["cache_entries"], counters["cache_bytes"]) == (1, 4 * ROW_BYTES)
    assert counters["cache_evictions"] == 4


def test_what_exceeds_the_budget_evicts_nothing() -> None:
    cache = EmbeddingCache(2 * ROW_BYTES)
    cache.put(b"a", embedding())
    cache.put(b"large", embedding(3))
    assert cache.get(b"a")
    assert cache.get(b"large") is None


def test_a_second_put_of_a_key_is_not_counted_twice() -> None:
    cache = EmbeddingCache(4 * ROW_BYTES)
    cache.put(b"a", embedding())
    cache.put(b"a", embedding())
    assert cache.counters()["cache_bytes"] == ROW_BYTES


def test_without_a_budget_nothing_is_kept() -> None:
    cache = EmbeddingCache(0)
    cache.put(b"a", embedding())
    assert cache.get(b"a") is None
