"""Replicas on another machine come and go with the load; one waits until Ray has its machine."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack, aclosing, asynccontextmanager
from dataclasses import replace
from pathlib import Path

from sglang_omni.engines.remote.contract import ClusterSettings, move_to_node
from sglang_omni.engines.runtime.autoscaler import Autoscaler
from sglang_omni.engines.runtime.pool import EnginePool
from sglang_omni.engines.runtime.process import ProcessSpec
from sglang_omni.engines.runtime.scaling_policy import ScalingRules
from tests.cluster.hosts import ADDRESS_A, ADDRESS_B, RAY, RAY_PORT, Machines, RayNode, engines_of
from tests.engines.runtime.processes import eventually, toy_spec
from tests.engines.runtime.toy_workers import Count, ToySettings
from tests.testing.machine import PATIENCE

SLOTS = 2
WITHIN_S = 60.0 * PATIENCE
RULES = ScalingRules(1, 2, upscale_delay_s=0.5, downscale_delay_s=3.0)


@asynccontextmanager
async def scaled(cluster: ClusterSettings, node: str) -> AsyncIterator[EnginePool]:
    """Run a pool of one toy here, and another on a node while requests wait."""
    here, there = toy_spec("step").replicate([ToySettings(slots=SLOTS)] * 2)
    pool = EnginePool((here, moved(there, node, cluster)), RULES.min_replicas)
    autoscaler = Autoscaler(pool, RULES)
    await pool.start()
    autoscaler.start()
    try:
        yield pool
    finally:
        await autoscaler.stop()
        await pool.stop(deadline_s=5.0)


def moved(spec: ProcessSpec, node: str, cluster: ClusterSettings) -> ProcessSpec:
    return move_to_node(replace(spec, start_deadline_s=WITHIN_S), node, cluster)


async def numbers(pool: EnginePool, count: int) -> list[int]:
    async with aclosing(pool.submit(Count(count))) as outputs:
        return [output.value async for output in outputs]


@asynccontextmanager
async def load(pool: EnginePool) -> AsyncIterator[None]:
    """Submit more requests than the first replica has slots, until the body ends."""
    async with AsyncExitStack() as stack:
        tasks = [asyncio.create_task(numbers(pool, 10**9)) for _ in range(SLOTS + 1)]
        stack.push_async_callback(asyncio.wait, tasks)
        for task in tasks:
            stack.callback(task.cancel)
        yield


def states(pool: EnginePool) -> list[str]:
    return [replica.health.state for replica in pool.replicas]


async def test_a_replica_on_another_machine_comes_and_goes(
    machines: Machines, cluster: ClusterSettings
) -> None:
    async with scaled(cluster, "node-b") as pool:
        assert engines_of(machines.link) == []
        async with load(pool):
            await eventually(lambda: states(pool) == ["ready", "ready"], WITHIN_S)
            [engine] = engines_of(machines.link)
            assert pool.replicas[1].health.info.pid == engine.pid
            assert await numbers(pool, 100) == list(range(100))
            long = asyncio.create_task(numbers(pool, 10_000))
            await eventually(lambda: pool.replicas[1].in_flight == 1, WITHIN_S)
        assert await long == list(range(10_000))
        await eventually(lambda: states(pool) == ["ready", "standby"], WITHIN_S)
        await eventually(lambda: engines_of(machines.link) == [], WITHIN_S)


async def test_a_replica_starts_once_ray_has_its_machine(
    machines: Machines, cluster: ClusterSettings, tmp_path: Path
) -> None:
    worker = [*RAY, "start", "--address", f"{ADDRESS_A}:{RAY_PORT}", "--block", "--num-cpus", "1"]
    worker += ["--node-ip-address", ADDRESS_B, "--node-name", "node-c"]
    worker += ["--object-store-memory", str(100 << 20)]
    async with scaled(cluster, "node-c") as pool, load(pool):
        await eventually(lambda: pool.replicas[1].health.error is not None, WITHIN_S)
        assert "has no node 'node-c'" in str(pool.replicas[1].health.error)
        assert pool.is_ready
        node = RayNode(machines.link.on_b(*worker), tmp_path / "node-c.log")
        try:
            await eventually(lambda: states(pool) == ["ready", "ready"], WITHIN_S)
            assert await numbers(pool, 10) == list(range(10))
        finally:
            node.stop()
