import asyncio
import json
from typing import Any

import pytest

from sglang_omni.entrypoints.realtime.event_sender import EventSender, SlowClient
from sglang_omni.entrypoints.realtime.protocol_version import GA
from tests.entrypoints.realtime.harness import ManualClock, settle


def outbox(budget: int = 1000, stall_s: float = 5.0) -> tuple[EventSender, ManualClock]:
    clock = ManualClock()
    return EventSender(budget, stall_s, clock, GA.to_client), clock


async def collect(box: EventSender) -> list[dict[str, Any]]:
    frames: list[dict[str, Any]] = []

    async def send(frame: str) -> None:
        frames.append(json.loads(frame))

    await box.flush(send)
    return frames


async def test_events_leave_in_order_each_with_an_id_of_its_own() -> None:
    box, _ = outbox()
    for number in range(3):
        box.put("a", number=number)
    frames = await collect(box)
    assert [frame["number"] for frame in frames] == [0, 1, 2]
    assert len({frame["event_id"] for frame in frames}) == 3
    assert box.bytes == 0


async def test_whoever_makes_much_waits_while_the_budget_is_used_up() -> None:
    box, _ = outbox(budget=100)
    await asyncio.wait_for(box.room(), 1)
    box.put("a", text="x" * 100)
    waiting = asyncio.create_task(box.room())
    await settle()
    assert not waiting.done()
    await collect(box)
    await asyncio.wait_for(waiting, 1)


async def test_a_reader_that_takes_nothing_is_given_up() -> None:
    box, _ = outbox(stall_s=0.05)
    box.put("a")

    async def never(frame: str) -> None:
        await asyncio.sleep(3600)

    with pytest.raises(SlowClient):
        await box.run(never)


async def test_sound_is_counted_when_it_leaves_and_taken_back_before() -> None:
    box, clock = outbox()
    for _ in range(3):
        box.put_sound("item", 100.0, {"delta": "x"})
        box.put("between")
    sent = 0

    async def send_two(frame: str) -> None:
        nonlocal sent
        sent += 1
        if sent == 3:
            raise ConnectionError

    with pytest.raises(ConnectionError):
        await box.flush(send_two)
    # The third was on its way when the connection broke.
    assert box.sent_ms("item") == 200
    assert box.heard_ms("item") == 0
    clock.time += 0.15
    assert box.heard_ms("item") == pytest.approx(150)
    box.stop_playback()
    clock.time += 10
    assert box.heard_ms("item") == pytest.approx(150)
    assert [frame["type"] for frame in await collect(box)] == ["between"] * 2
    assert box.sent_ms("other") == box.heard_ms("other") == 0


async def test_it_knows_how_long_the_listener_will_be_busy() -> None:
    box, clock = outbox()
    assert box.plays_until() == clock.time
    box.put_sound("item", 400.0, {})
    assert box.plays_until() == pytest.approx(clock.time + 0.4)
    await collect(box)
    clock.time += 0.1
    box.put_sound("item", 400.0, {})
    assert box.plays_until() == pytest.approx(clock.time + 0.7)
