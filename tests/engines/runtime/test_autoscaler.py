"""A pool grows while requests wait, shrinks when they are gone, and loses none of them."""

import asyncio
import os
import signal
from collections.abc import AsyncIterator, Callable
from contextlib import AsyncExitStack, aclosing, asynccontextmanager
from pathlib import Path
from typing import Any

import pytest

from sglang_omni.engines.runtime.autoscaler import Autoscaler
from sglang_omni.engines.runtime.load_meter import LoadMeter, is_full
from sglang_omni.engines.runtime.pool import EnginePool
from sglang_omni.engines.runtime.scaling_policy import ScalingRules
from tests.engines.runtime.processes import alive, eventually, toy_spec
from tests.engines.runtime.toy_workers import Count, Number, ToySettings
from tests.testing.machine import PATIENCE

ENDLESS = Count(10**9)
SLOTS = 4
POLL_S = 0.05
WITHIN_S = 30.0 * PATIENCE
FAST = ScalingRules(1, 3, upscale_delay_s=0.2, downscale_delay_s=1.0)
NEVER_SHRINK = ScalingRules(1, 3, upscale_delay_s=0.2, downscale_delay_s=1e6)


@asynccontextmanager
async def scaled(
    rules: ScalingRules = FAST,
    settings: tuple[ToySettings, ...] = (ToySettings(slots=SLOTS),) * 3,
    get_queue_counters: Callable[[], dict[str, float]] | None = None,
) -> AsyncIterator[EnginePool]:
    """Run a pool whose first replicas are up, and check that nothing of it is left afterwards."""
    pool = EnginePool(toy_spec("step").replicate(settings), rules.min_replicas)
    autoscaler = Autoscaler(pool, rules, get_queue_counters, POLL_S)
    await pool.start()
    autoscaler.start()
    try:
        yield pool
    finally:
        await autoscaler.stop()
        pids = [replica.pid for replica in pool.replicas if replica.pid is not None]
        await pool.stop(deadline_s=2.0)
        assert not any(map(alive, pids))
        assert [replica.pid for replica in pool.replicas] == [None] * len(pool.replicas)


async def first(stack: AsyncExitStack, engine: Any, request: Count = ENDLESS) -> Any:
    """A request that has begun, and goes on until the stack is left."""
    outputs = await stack.enter_async_context(aclosing(engine.submit(request)))
    assert isinstance(await anext(outputs), Number)
    return outputs


async def rest(outputs: Any) -> list[int]:
    return [output.value async for output in outputs]


async def test_a_pool_without_a_minimum_runs_only_while_it_is_asked() -> None:
    """The first request to wait starts the replica, which stops some time after the last."""
    queue = {"queued": 0.0, "rejected": 0.0}
    rules = ScalingRules(0, 1, upscale_delay_s=1e6, downscale_delay_s=1.0)
    async with scaled(rules, (ToySettings(slots=SLOTS),), lambda: queue) as pool:
        [replica] = pool.replicas
        assert (replica.health.state, replica.pid) == ("standby", None)
        queue["queued"] = 1.0
        await eventually(lambda: pool.is_ready, WITHIN_S)
        queue["queued"] = 0.0
        async with AsyncExitStack() as stack:
            await first(stack, pool)
            await asyncio.sleep(3 * rules.downscale_delay_s)
            assert pool.is_ready
        await eventually(lambda: replica.health.state == "standby", WITHIN_S)
        await eventually(lambda: replica.pid is None, WITHIN_S)


async def hold(stack: AsyncExitStack, pool: EnginePool, count: int) -> None:
    """Submit requests that do not end; those beyond the slots of a replica wait in it."""

    async def drain() -> None:
        async for _ in pool.submit(ENDLESS):
            pass

    async def cancel(task: asyncio.Task[None]) -> None:
        task.cancel()
        await asyncio.wait({task})

    for _ in range(count):
        stack.push_async_callback(cancel, asyncio.create_task(drain()))
    await asyncio.sleep(0)


async def numbers(engine: Any, count: int) -> list[int]:
    async with aclosing(engine.submit(Count(count))) as outputs:
        return [output.value async for output in outputs]


def kill(pool: EnginePool, index: int) -> None:
    pid = pool.replicas[index].pid
    assert pid is not None
    os.kill(pid, signal.SIGKILL)


def states(pool: EnginePool) -> list[str]:
    return [replica.health.state for replica in pool.replicas]


def loads(pool: EnginePool) -> list[int]:
    return [*pool.count_requests().values()]


async def until(pool: EnginePool, *expected: str) -> None:
    await eventually(lambda: states(pool) == [*expected], WITHIN_S)


async def test_at_first_only_the_minimum_runs() -> None:
    async with scaled() as pool:
        assert states(pool) == ["ready", "standby", "standby"]
        assert [replica.pid is None for replica in pool.replicas] == [False, True, True]
        assert pool.is_ready
        assert pool.replicas[1].health.info is None
        assert [await numbers(pool, 3) for _ in range(5)] == [[0, 1, 2]] * 5
        await asyncio.sleep(4 * FAST.upscale_delay_s)
        assert states(pool) == ["ready", "standby", "standby"]


async def test_load_adds_replicas_and_its_end_removes_them() -> None:
    async with scaled() as pool:
        async with AsyncExitStack() as stack:
            await hold(stack, pool, SLOTS + 1)
            await until(pool, "ready", "ready", "standby")
            await hold(stack, pool, SLOTS)
            assert loads(pool) == [SLOTS + 1, SLOTS, 0]
        await until(pool, "ready", "standby", "standby")
        await eventually(lambda: pool.replicas[1].pid is None, WITHIN_S)
        assert await numbers(pool, 3) == [0, 1, 2]


async def test_a_long_queue_starts_several_at_once() -> None:
    async with scaled(NEVER_SHRINK) as pool, AsyncExitStack() as stack:
        await hold(stack, pool, 3 * SLOTS)
        await eventually(lambda: states(pool)[1:] == ["starting", "starting"], WITHIN_S)
        await until(pool, "ready", "ready", "ready")


@asynccontextmanager
async def grown(pool: EnginePool) -> AsyncIterator[None]:
    """Keep a second replica up by load on the first; the load ends with the body."""
    async with AsyncExitStack() as stack:
        await hold(stack, pool, SLOTS + 1)
        await until(pool, "ready", "ready", "standby")
        yield


async def test_a_long_request_ends_well_on_a_replica_that_drains() -> None:
    async with scaled() as pool:
        async with AsyncExitStack() as stack:
            async with grown(pool):
                engine = stack.enter_context(pool.pin_replica())
                long = await first(stack, engine, Count(500))
            assert loads(pool) == [0, 1, 0]
            await until(pool, "ready", "draining", "standby")
            # New requests go to the other.
            assert await numbers(pool, 3) == [0, 1, 2]
            other = await first(stack, pool)
            assert loads(pool) == [1, 1, 0]
            await other.aclose()
            assert await rest(long) == list(range(1, 500))
            # It may have more to say: the replica waits for its last submission.
            await asyncio.sleep(FAST.downscale_delay_s)
            assert states(pool) == ["ready", "draining", "standby"]
            assert await numbers(engine, 3) == [0, 1, 2]
        await until(pool, "ready", "standby", "standby")


async def test_a_replica_that_drains_takes_requests_again_when_they_wait() -> None:
    async with scaled() as pool, AsyncExitStack() as stack:
        async with grown(pool):
            long = await first(stack, stack.enter_context(pool.pin_replica()))
        await until(pool, "ready", "draining", "standby")
        pid = pool.replicas[1].pid
        async with grown(pool):
            assert pool.replicas[1].pid == pid
        assert isinstance(await anext(long), Number)


async def test_a_replica_that_cannot_start_is_tried_again_and_others_meanwhile(
    tmp_path: Path,
) -> None:
    (broken := tmp_path / "broken").touch()
    bad = ToySettings(slots=SLOTS, fault="raise", only_if=broken)
    good = ToySettings(slots=SLOTS)
    async with scaled(NEVER_SHRINK, (good, bad, good)) as pool, AsyncExitStack() as stack:
        await hold(stack, pool, SLOTS + 1)
        await until(pool, "ready", "standby", "ready")
        health = pool.replicas[1].health
        assert health.error is not None
        assert "no toys" in health.error
        await hold(stack, pool, 2 * SLOTS)
        broken.unlink()
        await until(pool, "ready", "ready", "ready")
        assert pool.replicas[1].health.error is None
        assert await numbers(pool, 3) == [0, 1, 2]


async def test_pauses_between_starts_grow() -> None:
    settings = (ToySettings(slots=SLOTS), ToySettings(fault="raise"))
    times = []
    async with scaled(NEVER_SHRINK, settings) as pool, AsyncExitStack() as stack:
        await hold(stack, pool, SLOTS + 1)
        for _ in range(3):
            await until(pool, "ready", "starting")
            await until(pool, "ready", "standby")
            times.append(asyncio.get_running_loop().time())
    assert times[1] - times[0] >= 0.5
    assert times[2] - times[1] >= 1.0


async def test_a_replica_of_the_minimum_that_dies_is_replaced_until_it_is_back(
    tmp_path: Path,
) -> None:
    broken = tmp_path / "broken"
    breakable = ToySettings(slots=SLOTS, fault="raise", only_if=broken)
    async with scaled(FAST, (breakable, ToySettings(slots=SLOTS))) as pool:
        broken.touch()
        kill(pool, 0)
        await until(pool, "restarting", "ready")
        assert await numbers(pool, 3) == [0, 1, 2]
        await asyncio.sleep(2 * FAST.downscale_delay_s)
        assert states(pool) == ["restarting", "ready"]
        broken.unlink()
        await until(pool, "ready", "standby")


async def test_one_that_dies_and_is_not_needed_stays_away() -> None:
    async with scaled() as pool:
        async with grown(pool):
            pass
        kill(pool, 1)
        await until(pool, "ready", "standby", "standby")


async def test_no_request_is_lost_while_replicas_come_and_go() -> None:
    """Bursts with pauses, each longer than the delays: the pool grows and shrinks all the time."""
    seen: set[int] = set()
    rules = ScalingRules(1, 3, upscale_delay_s=0.1, downscale_delay_s=1.0)
    async with scaled(rules) as pool:
        for _ in range(3):
            burst = [asyncio.create_task(numbers(pool, 400)) for _ in range(4 * SLOTS)]
            while not all(task.done() for task in burst):
                seen.add(states(pool).count("ready"))
                assert await numbers(pool, 5) == list(range(5))
            assert [await task for task in burst] == [list(range(400))] * len(burst)
            for _ in range(20):
                seen.add(states(pool).count("ready"))
                assert await numbers(pool, 5) == list(range(5))
                await asyncio.sleep(0.1)
    assert 1 in seen
    assert max(seen) > 1


async def test_a_start_under_way_ends_with_the_pool() -> None:
    settings = (ToySettings(slots=SLOTS), ToySettings(fault="sleep"))
    async with scaled(NEVER_SHRINK, settings) as pool, AsyncExitStack() as stack:
        await hold(stack, pool, SLOTS + 1)
        await until(pool, "ready", "starting")
        await eventually(lambda: pool.replicas[1].pid is not None, WITHIN_S)


async def test_requests_that_wait_outside_count_once_the_pool_is_full() -> None:
    """Requests that hold a place without using it wait for another engine."""
    queue = {"queued": 2.0, "rejected": 5.0}
    pool = EnginePool(toy_spec("step").replicate([ToySettings(slots=SLOTS)] * 2), 1)
    meter = LoadMeter(pool, lambda: queue)
    await pool.start()
    try:
        async with AsyncExitStack() as stack:
            await first(stack, pool)
            load = meter.measure()
            assert (load.num_up, load.in_flight, load.backlog, load.slots) == (1, 1, 0, SLOTS)
            for _ in range(SLOTS - 1):
                await first(stack, pool)
            assert meter.measure().backlog == 2
            queue["rejected"] = 8.0
            assert meter.measure().backlog == 5
            assert meter.measure().backlog == 2
        assert meter.measure().backlog == 0
    finally:
        await pool.stop(deadline_s=2.0)


@pytest.mark.parametrize(
    ("counts", "slots", "full"),
    [
        ([4], 4, True),
        ([3], 4, False),
        ([5, 2], 4, False),
        ([5, 3], 4, True),
        ([], 4, True),
        ([1, 1], None, True),
        ([9, 0], None, False),
    ],
)
def test_a_pool_with_room_is_not_full(counts: list[int], slots: int | None, full: bool) -> None:
    assert is_full(counts, slots) == full
