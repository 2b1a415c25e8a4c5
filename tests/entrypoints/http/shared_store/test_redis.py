"""What Redis has of clients, and what is done when it does not answer."""

import asyncio
import json
import logging
import time
from typing import Any

import pytest
import uvloop
from prometheus_client import CollectorRegistry, generate_latest

from sglang_omni.protocol.errors import SharedStoreUnavailable
from tests.entrypoints.http.shared_store.redis_server import RedisServer
from tests.entrypoints.http.shared_store.stores_under_test import (
    LIMITS,
    StoresUnderTest,
    open_raw,
    open_shared,
)
from tests.entrypoints.http.shared_store.test_both_kinds import make_response

TENANT = "0123456789abcdef0123456789abcdef"
RECOVERY_S = 3.0
MARGIN_S = 1.0


async def wait_until_up(stores: Any, seconds: float = RECOVERY_S) -> float:
    """Return how long it takes until the store answers."""
    started = time.monotonic()
    while stores.describe()["shared_store"]["state"] != "ready":
        assert time.monotonic() - started < seconds, "the store does not come back"
        await asyncio.sleep(0.02)
    return time.monotonic() - started


async def fails(awaitable: Any) -> float:
    """Return how long it takes until an operation fails."""
    started = time.monotonic()
    with pytest.raises(SharedStoreUnavailable) as caught:
        await awaitable
    assert (caught.value.status, caught.value.retry_after_s) == (503, 1.0)
    return time.monotonic() - started


async def test_redis_has_json_under_keys_that_name_nobody(shared_redis: RedisServer) -> None:
    async with open_shared(shared_redis.url) as (stores, prefix), open_raw(shared_redis.url) as raw:
        await stores.responses.put(TENANT, make_response("resp_1", "你好"))
        await stores.transcripts.keep(TENANT, "audio-1", "words")
        await stores.images.add(b"image", "png")
        keys = sorted(key.decode() for key in await raw.keys(f"{prefix}:*"))
        kinds = [key.split(":")[1:-1] for key in keys if not key.endswith(":probe")]
        assert kinds == [["1", "image"], ["1", "response"], ["1", "transcript"]]
        assert not any(TENANT in key or "_1" in key or "-1" in key for key in keys)
        response = next(key for key in keys if ":response:" in key)
        value = await raw.get(response)
        assert "你好".encode() in value
        assert TENANT.encode() not in value
        entry = json.loads(value)
        stored = make_response("resp_1", "你好")
        assert entry["response"] == stored.response
        assert tuple(entry["input_items"]) == stored.input_items
        assert 0 < await raw.pttl(response) <= 24 * 3600 * 1000


@pytest.mark.parametrize("value", [None, b"", b"[]", b"{", b"\x80\x04N.", b'{"key": "x"}'])
async def test_an_entry_of_another_key_is_not_returned(
    shared_redis: RedisServer, value: bytes | None
) -> None:
    async with open_shared(shared_redis.url) as (stores, prefix), open_raw(shared_redis.url) as raw:
        await stores.responses.put("a", make_response("resp_1", "a secret"))
        (theirs,) = await raw.keys(f"{prefix}:1:response:*")
        await stores.responses.put("b", make_response("resp_1"))
        (mine,) = set(await raw.keys(f"{prefix}:1:response:*")) - {theirs}
        await raw.set(mine, await raw.get(theirs) if value is None else value)
        await fails(stores.responses.get("b", "resp_1"))
        assert await stores.responses.get("a", "resp_1") is not None


async def test_prefixes_are_stores_of_their_own(shared_redis: RedisServer) -> None:
    async with (
        open_shared(shared_redis.url) as (first, prefix),
        open_shared(shared_redis.url, key_prefix=prefix) as (second, _),
        open_shared(shared_redis.url) as (other, _),
    ):
        await first.responses.put("a", make_response("resp_1"))
        assert await second.responses.get("a", "resp_1") == make_response("resp_1")
        assert await other.responses.get("a", "resp_1") is None


async def test_more_callers_than_connections_get_what_is_theirs(
    shared_redis: RedisServer,
) -> None:
    async with open_shared(shared_redis.url) as (stores, _):
        responses = [make_response(f"resp_{n}", f"text {n} " * 500) for n in range(100)]
        await asyncio.gather(*(stores.responses.put("a", one) for one in responses))
        found = await asyncio.gather(*(stores.responses.get("a", one.id) for one in responses))
        assert found == responses


async def test_a_caller_that_goes_away_leaves_no_reply_to_the_next(
    shared_redis: RedisServer,
) -> None:
    async with open_shared(shared_redis.url) as (stores, _), open_raw(shared_redis.url) as raw:

        async def count_connections() -> int:
            return int((await raw.info("stats"))["total_connections_received"])

        responses = [make_response(f"resp_{n}", f"text {n} " * 500) for n in range(40)]
        for one in responses:
            await stores.responses.put("a", one)
        await asyncio.gather(*(stores.responses.get("a", one.id) for one in responses))
        num_opened, num_cancelled = await count_connections(), 0
        for turn in range(40):
            tasks = [asyncio.create_task(stores.responses.get("a", one.id)) for one in responses]
            for _ in range(turn % 8):
                await asyncio.sleep(0)
            for task in tasks[::2]:
                num_cancelled += task.cancel()
            found = await asyncio.gather(*tasks, return_exceptions=True)
            assert found[1::2] == responses[1::2]
        assert num_cancelled > 100
        # Each connection is still there for the next ones.
        assert await count_connections() == num_opened
        found = await asyncio.gather(*(stores.responses.get("a", one.id) for one in responses))
        assert found == responses


async def test_redis_that_does_not_answer_costs_its_time_limit_once(
    own_redis: RedisServer, caplog: pytest.LogCaptureFixture
) -> None:
    registry = CollectorRegistry()
    caplog.set_level(logging.WARNING)
    async with open_shared(own_redis.url, registry, timeout_s=0.5) as (stores, _):
        await stores.responses.put("a", make_response("resp_1"))
        own_redis.pause()
        assert 0.4 < await fails(stores.responses.get("a", "resp_1")) < 0.5 + MARGIN_S
        # From now on nothing waits, and answers are as good as without a store.
        started = time.monotonic()
        await fails(stores.responses.get("a", "resp_1"))
        await fails(stores.transcripts.recall("a", ["audio-1"]))
        await fails(stores.responses.delete("a", "resp_1"))
        await fails(stores.images.add(b"", "png"))
        assert not await stores.responses.put("a", make_response("resp_2"))
        assert not await stores.transcripts.keep("a", "audio-1", "words")
        assert time.monotonic() - started < 0.3
        assert stores.describe()["shared_store"]["state"] == "unavailable"
        metrics = generate_latest(registry).decode()
        assert "sgl_omni_shared_store_up 0.0" in metrics
        assert 'shared_store_failures_total{operation="read"} 3.0' in metrics
        assert 'shared_store_failures_total{operation="write"} 3.0' in metrics
        assert 'shared_store_failures_total{operation="delete"} 1.0' in metrics
        own_redis.resume()
        await wait_until_up(stores)
        assert await stores.responses.get("a", "resp_1") == make_response("resp_1")
        assert "sgl_omni_shared_store_up 1.0" in generate_latest(registry).decode()
        said = [record.message for record in caplog.records if "shared store" in record.message]
        assert len(said) == 2
        assert "does not answer (TimeoutError)" in said[0]
        assert "answers again" in said[1]


async def kill_twice(redis: RedisServer) -> None:
    async with open_shared(redis.url) as (stores, _):
        # Several connections, all of which are closed.
        await asyncio.gather(
            *(stores.responses.put("a", make_response(f"resp_{n}")) for n in range(20))
        )
        for _ in range(2):
            redis.kill()
            await fails(stores.responses.get("a", "resp_1"))
            assert not await stores.responses.put("a", make_response("resp_1"))
            redis.start()
            await wait_until_up(stores)
            assert await stores.responses.get("a", "resp_1") is None
            assert await stores.responses.put("a", make_response("resp_1"))
            assert await stores.responses.get("a", "resp_1") == make_response("resp_1")


@pytest.mark.parametrize("make_loop", [asyncio.new_event_loop, uvloop.new_event_loop])
def test_redis_that_was_killed_is_found_again(
    own_redis: RedisServer, caplog: pytest.LogCaptureFixture, make_loop: Any
) -> None:
    caplog.set_level(logging.WARNING)
    with asyncio.Runner(loop_factory=make_loop) as runner:
        runner.run(kill_twice(own_redis))
    assert sum("does not answer" in record.message for record in caplog.records) == 2


async def test_connections_that_redis_closed_are_not_an_outage(
    own_redis: RedisServer, caplog: pytest.LogCaptureFixture
) -> None:
    async with open_shared(own_redis.url) as (stores, _), open_raw(own_redis.url) as raw:
        responses = [make_response(f"resp_{n}") for n in range(20)]
        await asyncio.gather(*(stores.responses.put("a", one) for one in responses))
        await raw.client_kill_filter(_type="normal", skipme=True)
        found = await asyncio.gather(*(stores.responses.get("a", one.id) for one in responses))
        assert found == responses
        assert not [one for one in caplog.records if "shared store" in one.message]


async def test_an_outage_is_noticed_without_requests(
    own_redis: RedisServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    from sglang_omni.entrypoints.http.shared_store import client

    monkeypatch.setattr(client, "CHECK_INTERVAL_S", 0.1)
    async with open_shared(own_redis.url) as (stores, _):
        own_redis.kill()
        deadline = time.monotonic() + RECOVERY_S
        while stores.describe()["shared_store"]["state"] == "ready":
            assert time.monotonic() < deadline
            await asyncio.sleep(0.02)


async def test_redis_that_is_full_still_answers_reads(
    own_redis: RedisServer, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.WARNING)
    async with open_shared(own_redis.url) as (stores, _), open_raw(own_redis.url) as raw:
        assert await stores.responses.put("a", make_response("resp_1"))
        await raw.config_set("maxmemory", "1")
        for number in range(3):
            assert not await stores.responses.put("a", make_response(f"resp_x{number}"))
        assert not await stores.transcripts.keep("a", "audio-1", "words")
        assert await stores.responses.get("a", "resp_1") is not None
        state = stores.describe()["shared_store"]
        assert (state["state"], state["last_error"]) == ("ready", "OutOfMemoryError")
        await raw.config_set("maxmemory", "0")
        assert await stores.responses.put("a", make_response("resp_2"))
        said = [one.message for one in caplog.records if "shared store" in one.message]
        assert said == ["the shared store rejects operations (OutOfMemoryError)"]


async def test_redis_that_has_become_a_replica_is_an_outage(own_redis: RedisServer) -> None:
    async with open_shared(own_redis.url) as (stores, _), open_raw(own_redis.url) as raw:
        await raw.execute_command("REPLICAOF", "127.0.0.1", "1")
        assert not await stores.responses.put("a", make_response("resp_1"))
        assert stores.describe()["shared_store"]["last_error"] == "ReadOnlyError"
        await fails(stores.responses.get("a", "resp_1"))
        await raw.execute_command("REPLICAOF", "NO", "ONE")
        await wait_until_up(stores)
        assert await stores.responses.put("a", make_response("resp_1"))


async def test_connections_are_closed_at_the_end(own_redis: RedisServer) -> None:
    async with open_raw(own_redis.url) as raw:
        async with open_shared(own_redis.url) as (stores, _):
            await asyncio.gather(
                *(stores.responses.put("a", make_response(f"resp_{n}")) for n in range(10))
            )
            assert len(await raw.client_list()) > 2
        assert len(await raw.client_list()) == 1


async def test_the_size_of_a_response_counts_what_it_takes_in_memory(
    stores: StoresUnderTest,
) -> None:
    stored = make_response("resp_1", "x" * 5000)
    assert 5000 < stored.size_bytes < LIMITS.max_response_bytes
    await stores.responses.put("a", stored)
    found = await stores.responses.get("a", "resp_1")
    assert found is not None
    assert found.size_bytes == stored.size_bytes
