"""The door in motion: rooms, queues, time-outs, cancellations."""

import asyncio
import time
from contextlib import AsyncExitStack
from typing import Any

import pytest

from sglang_omni.protocol.errors import Overloaded
from sglang_omni.queueing.policy import Capacity, Priority
from sglang_omni.queueing.queue import AdmissionQueue, QueueRules


class Engine:
    """What the turnstile asks for."""

    def __init__(self, slots: int = 1) -> None:
        self.budget: Capacity | None = Capacity(slots)

    def turnstile(self, length: int = 8, seconds: float = 5.0) -> AdmissionQueue:
        return AdmissionQueue("toy", lambda: self.budget, QueueRules(length, seconds))


async def occupy(door: AdmissionQueue, tenant: str | None = None) -> AsyncExitStack:
    stack = AsyncExitStack()
    await stack.enter_async_context(door.admit(tenant, "normal"))
    return stack


async def visit(
    door: AdmissionQueue,
    log: list[str],
    name: str,
    priority: Priority = "normal",
    hold_s: float = 0,
) -> None:
    async with door.admit(name, priority):
        log.append(name)
        await asyncio.sleep(hold_s)


async def waiting(door: AdmissionQueue, count: int) -> None:
    while door.counters()["queued"] != count:
        await asyncio.sleep(0)


def idle(door: AdmissionQueue) -> bool:
    return door.counters()["admitted"] == door.counters()["queued"] == 0


async def test_tenants_take_turns_at_a_single_slot() -> None:
    door, log = Engine().turnstile(length=64), []  # type: ignore[var-annotated]
    tenants = ["flood"] * 5 + ["other", "third", "other"]
    await asyncio.gather(*(visit(door, log, tenant) for tenant in tenants))
    assert log == ["flood", "other", "third", "flood", "other", "flood", "flood", "flood"]


async def test_whoever_waits_is_let_in_by_priority_when_one_leaves() -> None:
    door, log = Engine().turnstile(), []  # type: ignore[var-annotated]
    first = await occupy(door)
    visits = [
        asyncio.create_task(visit(door, log, name, priority))
        for name, priority in (("low", "low"), ("normal", "normal"), ("live", "realtime"))
    ]
    await waiting(door, 3)
    await first.aclose()
    await asyncio.gather(*visits)
    assert log == ["live", "normal", "low"]
    assert idle(door)


async def test_a_full_queue_refuses_in_an_instant_and_says_when_to_come_again() -> None:
    door, log = Engine().turnstile(length=1), []  # type: ignore[var-annotated]
    first = await occupy(door)
    queued = asyncio.create_task(visit(door, log, "queued"))
    await waiting(door, 1)
    began = time.monotonic()
    with pytest.raises(Overloaded, match="the toy is at capacity") as refused:
        await visit(door, log, "newest")
    assert time.monotonic() - began < 0.1
    assert refused.value.status == 429 and refused.value.retry_after_s
    await first.aclose()
    await queued
    assert log == ["queued"] and idle(door)


async def test_a_higher_priority_takes_the_place_of_a_lower_one_in_the_queue() -> None:
    door, log = Engine().turnstile(length=1), []  # type: ignore[var-annotated]
    first = await occupy(door)
    low = asyncio.create_task(visit(door, log, "low", "low"))
    await waiting(door, 1)
    live = asyncio.create_task(visit(door, log, "live", "realtime"))
    with pytest.raises(Overloaded):
        await low
    await first.aclose()
    await live
    assert log == ["live"] and idle(door)


async def test_nobody_waits_longer_than_the_rules_say() -> None:
    door, log = Engine().turnstile(seconds=0.05), []  # type: ignore[var-annotated]
    first = await occupy(door)
    with pytest.raises(Overloaded, match=r"waited 0\.05 s"):
        await visit(door, log, "patient")
    await first.aclose()
    assert idle(door)


async def test_whoever_is_cancelled_leaves_no_trace() -> None:
    door, log = Engine().turnstile(), []  # type: ignore[var-annotated]
    first = await occupy(door)
    queued = asyncio.create_task(visit(door, log, "queued"))
    await waiting(door, 1)
    queued.cancel()
    await asyncio.wait({queued})
    # One cancelled in the very turn in which it is let in must give its place back, too.
    unlucky = asyncio.create_task(visit(door, log, "unlucky"))
    await waiting(door, 1)
    await first.aclose()
    unlucky.cancel()
    await asyncio.wait({unlucky})
    assert log == [] and idle(door)
    await visit(door, log, "next")


async def test_an_engine_that_goes_down_lets_everybody_through_to_its_error() -> None:
    engine = Engine()
    door, log = engine.turnstile(), []  # type: ignore[var-annotated]
    first = await occupy(door)
    queued = asyncio.create_task(visit(door, log, "queued"))
    await waiting(door, 1)
    engine.budget = None
    await asyncio.wait_for(queued, 1)
    await first.aclose()
    assert idle(door)


async def test_room_in_the_cache_is_found_without_anyones_leaving() -> None:
    engine = Engine()
    engine.budget = Capacity(9, kv_tokens=100, kv_tokens_used=100)
    door = engine.turnstile()
    async with AsyncExitStack() as stack:
        await stack.enter_async_context(door.admit(None, "normal", 10))
        second: Any = asyncio.create_task(stack.enter_async_context(door.admit(None, "normal", 10)))
        await waiting(door, 1)
        engine.budget = Capacity(9, kv_tokens=100, kv_tokens_used=10)
        await asyncio.wait_for(second, 1)
    assert idle(door)


async def test_a_thousand_visits_leave_nothing_behind() -> None:
    door, log = Engine(slots=4).turnstile(length=1000), []  # type: ignore[var-annotated]
    visits = [asyncio.create_task(visit(door, log, str(n % 7))) for n in range(1000)]
    for number in range(0, 1000, 3):
        visits[number].cancel()
    await asyncio.gather(*visits, return_exceptions=True)
    assert idle(door)
    assert len(log) >= 666
