"""Turns at the grammar checker: tenants alternate, and who floods the queue refuses itself."""

import asyncio

import pytest

from sglang_omni.errors import Overloaded
from sglang_omni.grammar.queue import FairQueue


async def take(queue: FairQueue, tenant: str, order: list[str]) -> None:
    async with queue.turn(tenant):
        order.append(tenant)
        await asyncio.sleep(0)


async def test_tenants_take_turns_whoever_came_first() -> None:
    queue, order = FairQueue(64), list[str]()
    tenants = ["flood"] * 5 + ["other", "third", "other"]
    await asyncio.gather(*(take(queue, tenant, order) for tenant in tenants))
    assert order == ["flood", "flood", "other", "third", "flood", "other", "flood", "flood"]


async def test_the_newest_of_the_tenant_with_the_most_is_refused() -> None:
    queue, order, gate = FairQueue(3), list[str](), asyncio.Event()

    async def wait_and_take(tenant: str) -> None:
        async with queue.turn(tenant):
            await gate.wait()
            order.append(tenant)

    tenants = ["flood"] * 4 + ["other"]
    waiting = [asyncio.create_task(wait_and_take(tenant)) for tenant in tenants]
    await asyncio.sleep(0)
    gate.set()
    results = await asyncio.gather(*waiting, return_exceptions=True)
    assert [isinstance(one, Overloaded) for one in results] == [False, False, False, True, False]
    assert order == ["flood", "flood", "other", "flood"]


@pytest.mark.parametrize("steps", range(4))
async def test_whoever_leaves_does_not_keep_its_turn(steps: int) -> None:
    queue, order = FairQueue(64), list[str]()
    tasks = [asyncio.create_task(take(queue, name, order)) for name in ("a", "b", "c")]
    for _ in range(steps):
        await asyncio.sleep(0)
    tasks[1].cancel()
    async with asyncio.timeout(1):
        await asyncio.gather(*tasks, return_exceptions=True)
        await take(queue, "d", order)
    assert order[-1] == "d" and "c" in order
