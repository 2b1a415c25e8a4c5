"""What is evicted, in which order, and what counts as use."""

from sglang_omni.caching.lru_cache import LruCache


def test_the_least_recently_used_entry_is_evicted() -> None:
    cache: LruCache[str, int] = LruCache(max_entries=2)
    cache.put("a", 1)
    cache.put("b", 2)
    assert cache.get("a") == 1
    cache.put("c", 3)
    assert (cache.get("a"), cache.get("b"), cache.get("c")) == (1, None, 3)
    assert (len(cache), cache.num_evicted) == (2, 1)


def test_a_peek_is_no_use() -> None:
    cache: LruCache[str, int] = LruCache(max_entries=2)
    cache.put("a", 1)
    cache.put("b", 2)
    assert cache.peek("a") == 1
    cache.put("c", 3)
    assert cache.peek("a") is None
    assert cache.oldest() == ("b", 2)


def test_entries_are_evicted_until_the_weight_fits() -> None:
    cache: LruCache[str, str] = LruCache(max_weight=5, get_weight=len)
    for key, value in (("a", "xx"), ("b", "yy"), ("c", "zzz")):
        cache.put(key, value)
    assert (cache.peek("a"), cache.weight, cache.num_evicted) == (None, 5, 1)
    cache.put("d", "vvvv")
    assert (cache.oldest(), len(cache), cache.weight) == (("d", "vvvv"), 1, 4)


def test_a_value_heavier_than_the_cache_evicts_everything() -> None:
    cache: LruCache[str, str] = LruCache(max_weight=3, get_weight=len)
    cache.put("a", "x")
    cache.put("b", "yyyy")
    assert (len(cache), cache.weight, cache.oldest()) == (0, 0, None)


def test_a_replaced_value_is_the_most_recent_and_is_weighed_anew() -> None:
    cache: LruCache[str, str] = LruCache(max_weight=10, get_weight=len)
    cache.put("a", "xxxx")
    cache.put("b", "yy")
    cache.put("a", "x")
    assert (cache.oldest(), cache.weight, cache.num_evicted) == (("b", "yy"), 3, 0)


def test_a_popped_value_is_gone_and_weighs_nothing() -> None:
    cache: LruCache[str, str] = LruCache(max_entries=2, max_weight=10, get_weight=len)
    cache.put("a", "xx")
    assert (cache.pop("a"), cache.pop("a"), cache.weight, len(cache)) == ("xx", None, 0, 0)
