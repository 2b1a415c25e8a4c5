"""The queue at work: capacity, waiting, time limits, cancellations."""

import asyncio
import time
from contextlib import AsyncExitStack
from typing import Any

import pytest

from sglang_omni.protocol.errors import Overloaded
from sglang_omni.queueing.policy import Capacity, Priority
from sglang_omni.queueing.queue import AdmissionQueue, QueueRules


class Engine:
    """An engine with a capacity that tests may change."""

    def __init__(self, slots: int = 1) -> None:
        self.capacity: Capacity | None = Capacity(slots)

    def queue(self, length: int = 8, seconds: float = 5.0) -> AdmissionQueue:
        return AdmissionQueue("toy", lambda: self.capacity, QueueRules(length, seconds))


async def occupy(queue: AdmissionQueue, tenant: str | None = None) -> AsyncExitStack:
    stack = AsyncExitStack()
    await stack.enter_async_context(queue.admit(tenant, "normal"))
    return stack


async def visit(
    queue: AdmissionQueue,
    log: list[str],
    name: str,
    priority: Priority = "normal",
    hold_s: float = 0,
) -> None:
    async with queue.admit(name, priority):
        log.append(name)
        await asyncio.sleep(hold_s)


async def waiting(queue: AdmissionQueue, count: int) -> None:
    while queue.counters()["queued"] != count:
        await asyncio.sleep(0)


def idle(queue: AdmissionQueue) -> bool:
    return queue.counters()["admitted"] == queue.counters()["queued"] == 0


async def test_tenants_take_turns_at_a_single_slot() -> None:
    queue, log = Engine().queue(length=64), list[str]()
    tenants = ["flood"] * 5 + ["other", "third", "other"]
    await asyncio.gather(*(visit(queue, log, tenant) for tenant in tenants))
    assert log == ["flood", "other", "third", "flood", "other", "flood", "flood", "flood"]


async def test_whoever_waits_is_let_in_by_priority_when_one_leaves() -> None:
    queue, log = Engine().queue(), list[str]()
    first = await occupy(queue)
    asked: dict[str, Priority] = {"low": "low", "normal": "normal", "live": "realtime"}
    visits = [
        asyncio.create_task(visit(queue, log, name, priority)) for name, priority in asked.items()
    ]
    await waiting(queue, 3)
    await first.aclose()
    await asyncio.gather(*visits)
    assert log == ["live", "normal", "low"]
    assert idle(queue)


async def test_a_full_queue_refuses_in_an_instant_and_says_when_to_come_again() -> None:
    queue, log = Engine().queue(length=1), list[str]()
    first = await occupy(queue)
    queued = asyncio.create_task(visit(queue, log, "queued"))
    await waiting(queue, 1)
    began = time.monotonic()
    with pytest.raises(Overloaded, match="the toy is at capacity") as refused:
        await visit(queue, log, "newest")
    assert time.monotonic() - began < 0.1
    assert refused.value.status == 429
    assert refused.value.retry_after_s
    await first.aclose()
    await queued
    assert log == ["queued"]
    assert idle(queue)


async def test_a_higher_priority_takes_the_place_of_a_lower_one_in_the_queue() -> None:
    queue, log = Engine().queue(length=1), list[str]()
    first = await occupy(queue)
    low = asyncio.create_task(visit(queue, log, "low", "low"))
    await waiting(queue, 1)
    live = asyncio.create_task(visit(queue, log, "live", "realtime"))
    with pytest.raises(Overloaded):
        await low
    await first.aclose()
    await live
    assert log == ["live"]
    assert idle(queue)


async def test_nobody_waits_longer_than_the_rules_say() -> None:
    queue, log = Engine().queue(seconds=0.05), list[str]()
    first = await occupy(queue)
    with pytest.raises(Overloaded, match=r"waited 0\.05 s"):
        await visit(queue, log, "patient")
    await first.aclose()
    assert idle(queue)


async def test_whoever_is_cancelled_leaves_no_trace() -> None:
    queue, log = Engine().queue(), list[str]()
    first = await occupy(queue)
    queued = asyncio.create_task(visit(queue, log, "queued"))
    await waiting(queue, 1)
    queued.cancel()
    await asyncio.wait({queued})
    # One cancelled in the very turn in which it is let in must give its place back, too.
    unlucky = asyncio.create_task(visit(queue, log, "unlucky"))
    await waiting(queue, 1)
    await first.aclose()
    unlucky.cancel()
    await asyncio.wait({unlucky})
    assert log == []
    assert idle(queue)
    await visit(queue, log, "next")


async def test_an_engine_that_goes_down_lets_everybody_through_to_its_error() -> None:
    engine = Engine()
    queue, log = engine.queue(), list[str]()
    first = await occupy(queue)
    queued = asyncio.create_task(visit(queue, log, "queued"))
    await waiting(queue, 1)
    engine.capacity = None
    await asyncio.wait_for(queued, 1)
    await first.aclose()
    assert idle(queue)


async def test_room_in_the_cache_is_found_without_anyones_leaving() -> None:
    engine = Engine()
    engine.capacity = Capacity(9, kv_tokens=100, kv_tokens_used=100)
    queue = engine.queue()
    async with AsyncExitStack() as stack:
        await stack.enter_async_context(queue.admit(None, "normal", 10))
        second: Any = asyncio.create_task(
            stack.enter_async_context(queue.admit(None, "normal", 10))
        )
        await waiting(queue, 1)
        engine.capacity = Capacity(9, kv_tokens=100, kv_tokens_used=10)
        await asyncio.wait_for(second, 1)
    assert idle(queue)


async def test_a_thousand_visits_leave_nothing_behind() -> None:
    queue, log = Engine(slots=4).queue(length=1000), list[str]()
    visits = [asyncio.create_task(visit(queue, log, str(n % 7))) for n in range(1000)]
    for number in range(0, 1000, 3):
        visits[number].cancel()
    await asyncio.gather(*visits, return_exceptions=True)
    assert idle(queue)
    assert len(log) >= 666
