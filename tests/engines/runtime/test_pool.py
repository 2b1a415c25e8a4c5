"""Replicas: requests are spread and stay where they are; one that dies takes only its own along."""

import os
import signal
from collections.abc import AsyncIterator, Iterator
from contextlib import AsyncExitStack, aclosing, asynccontextmanager, contextmanager
from typing import Any

import pytest

from sglang_omni.engines.runtime.pool import EnginePool, PinnedReplica, select_replica
from sglang_omni.protocol.errors import EngineFailed, EngineUnavailable, StartupError
from tests.engines.runtime.processes import eventually, toy_spec
from tests.engines.runtime.toy_workers import Count, Number, ToySettings

ENDLESS = Count(10**9)


@asynccontextmanager
async def pool_of(count: int, kind: str = "step") -> AsyncIterator[EnginePool]:
    pool = EnginePool(toy_spec(kind).replicate([ToySettings()] * count))
    await pool.start()
    try:
        yield pool
    finally:
        await pool.stop(deadline_s=2.0)


async def first(stack: AsyncExitStack, engine: Any, request: Count = ENDLESS) -> Any:
    """A request that has begun, and goes on until the stack is left."""
    outputs = await stack.enter_async_context(aclosing(engine.submit(request)))
    assert isinstance(await anext(outputs), Number)
    return outputs


@contextmanager
def pinned(pool: EnginePool) -> Iterator[PinnedReplica]:
    with pool.pin_replica() as engine:
        assert isinstance(engine, PinnedReplica)
        yield engine


def loads(pool: EnginePool) -> list[int]:
    return [replica.in_flight for replica in pool.replicas]


def kill(pool: EnginePool, index: int) -> None:
    pid = pool.replicas[index].pid
    assert pid is not None
    os.kill(pid, signal.SIGKILL)


@pytest.mark.parametrize(
    ("replicas", "chosen"),
    [
        ([("ready", 0)], 0),
        ([("ready", 3), ("ready", 1), ("ready", 2)], 1),
        ([("ready", 1), ("ready", 1)], 0),
        ([("restarting", 0), ("ready", 9)], 1),
        ([("unresponsive", 0), ("ready", 9)], 1),
        ([("restarting", 0), ("unresponsive", 4)], 1),
        ([("failed", 0), ("restarting", 0)], 0),
        ([("draining", 0), ("ready", 9)], 1),
        ([("draining", 9), ("unresponsive", 9)], 1),
        ([("restarting", 0), ("draining", 9)], 1),
        ([("standby", 0), ("restarting", 9)], 1),
    ],
)
def test_the_ready_one_with_the_fewest_requests_is_next(replicas: Any, chosen: int) -> None:
    assert select_replica(replicas) == chosen


async def test_requests_are_spread_and_each_stays_with_its_replica() -> None:
    async with pool_of(2) as pool, AsyncExitStack() as stack:
        one, other = (stack.enter_context(pool.pin_replica()) for _ in range(2))
        await first(stack, one)
        await first(stack, other)
        assert loads(pool) == [1, 1]
        await first(stack, one)
        await first(stack, one)
        assert loads(pool) == [3, 1]
        await first(stack, pool)
        assert loads(pool) == [3, 2]


async def test_a_request_counts_from_its_beginning_to_its_end_and_in_its_pauses() -> None:
    async with pool_of(2) as pool:
        with pinned(pool) as one, pinned(pool) as other:
            assert [one.replica, other.replica] == [*pool.replicas]
            assert [output.value async for output in one.submit(Count(2))] == [0, 1]
            with pinned(pool) as third, pinned(pool) as fourth:
                assert {third.replica, fourth.replica} == {*pool.replicas}
        assert loads(pool) == [0, 0]
        assert pool.select_next() is pool.replicas[0]


async def test_a_request_that_has_not_begun_leaves_a_replica_that_is_down() -> None:
    async with pool_of(2) as pool:
        with pinned(pool) as one:
            kill(pool, 0)
            await eventually(lambda: pool.replicas[0].health.state != "ready", within_s=5)
            assert [output.value async for output in one.submit(Count(2))] == [0, 1]
            assert one.replica is pool.replicas[1]


async def test_a_replica_that_dies_fails_its_own_requests_and_comes_back_alone() -> None:
    async with pool_of(2) as pool, AsyncExitStack() as stack:
        doomed, lasting = (stack.enter_context(pool.pin_replica()) for _ in range(2))
        lost, kept = await first(stack, doomed), await first(stack, lasting)
        kill(pool, 0)
        with pytest.raises(EngineFailed, match="toy died"):
            async for _ in lost:
                pass
        assert pool.is_ready
        # What the request asks for next does not go to another, which knows nothing of it.
        with pytest.raises(EngineUnavailable):
            await anext(doomed.submit(Count(1)))
        assert [one.value async for one in pool.submit(Count(2))] == [0, 1]
        assert isinstance(await anext(kept), Number)
        await eventually(lambda: pool.replicas[0].health.state == "ready", within_s=20)
        assert [replica.health.restarts for replica in pool.replicas] == [1, 0]
        assert isinstance(await anext(kept), Number)
        await first(stack, pool)
        assert loads(pool) == [1, 1]


async def test_without_a_living_replica_a_request_meets_the_error() -> None:
    async with pool_of(2) as pool:
        for index in (0, 1):
            kill(pool, index)
        await eventually(lambda: not pool.is_ready, within_s=5)
        with pytest.raises(EngineUnavailable, match="restarting"):
            await anext(pool.submit(Count(1)))


async def test_a_pool_starts_as_a_whole_or_not_at_all() -> None:
    settings = [ToySettings(), ToySettings(fault="raise")]
    pool = EnginePool(toy_spec("step").replicate(settings))
    assert [*pool.processes] == ["toy", "toy-1"]
    with pytest.raises(StartupError):
        await pool.start()
    await pool.stop(deadline_s=2.0)
    assert [replica.pid for replica in pool.replicas] == [None, None]
