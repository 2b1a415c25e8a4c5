"""The queue of events to a client, and when their audio counts as sent."""

import asyncio
import json
from typing import Any

import pytest

from sglang_omni.entrypoints.realtime.event_sender import EventSender, SlowClient
from sglang_omni.entrypoints.realtime.protocol_version import GA
from tests.entrypoints.realtime.harness import ManualClock, run_ready_tasks


def make_sender(max_bytes: int = 1000, stall_s: float = 5.0) -> tuple[EventSender, ManualClock]:
    clock = ManualClock()
    return EventSender(max_bytes, stall_s, clock, GA.to_client), clock


async def collect(sender: EventSender) -> list[dict[str, Any]]:
    frames: list[dict[str, Any]] = []

    async def send(frame: str) -> None:
        frames.append(json.loads(frame))

    await sender.flush(send)
    return frames


async def test_events_are_sent_in_order_with_unique_ids() -> None:
    sender, _ = make_sender()
    for number in range(3):
        sender.put("a", number=number)
    frames = await collect(sender)
    assert [frame["number"] for frame in frames] == [0, 1, 2]
    assert len({frame["event_id"] for frame in frames}) == 3
    assert sender.queued_bytes == 0


async def test_producers_wait_while_the_queue_is_full() -> None:
    sender, _ = make_sender(max_bytes=100)
    await asyncio.wait_for(sender.wait_for_room(), 1)
    sender.put("a", text="x" * 100)
    waiting = asyncio.create_task(sender.wait_for_room())
    await run_ready_tasks()
    assert not waiting.done()
    await collect(sender)
    await asyncio.wait_for(waiting, 1)


async def test_a_client_that_reads_nothing_is_given_up() -> None:
    sender, _ = make_sender(stall_s=0.05)
    sender.put("a")

    async def never(frame: str) -> None:
        await asyncio.sleep(3600)

    with pytest.raises(SlowClient):
        await sender.run(never)


async def test_audio_counts_as_sent_when_it_leaves_and_can_be_discarded_before() -> None:
    sender, clock = make_sender()
    for _ in range(3):
        sender.put_audio("item", 100.0, {"delta": "x"})
        sender.put("between")
    sent = 0

    async def send_two(frame: str) -> None:
        nonlocal sent
        sent += 1
        if sent == 3:
            raise ConnectionError

    with pytest.raises(ConnectionError):
        await sender.flush(send_two)
    # The third was on its way when the connection broke.
    assert sender.sent_ms("item") == 200
    assert sender.played_ms("item") == 0
    clock.time += 0.15
    assert sender.played_ms("item") == pytest.approx(150)
    sender.stop_playback()
    clock.time += 10
    assert sender.played_ms("item") == pytest.approx(150)
    assert [frame["type"] for frame in await collect(sender)] == ["between"] * 2
    assert sender.sent_ms("other") == sender.played_ms("other") == 0


async def test_the_end_of_playback_includes_queued_audio() -> None:
    sender, clock = make_sender()
    assert sender.playback_ends_at() == clock.time
    sender.put_audio("item", 400.0, {})
    assert sender.playback_ends_at() == pytest.approx(clock.time + 0.4)
    await collect(sender)
    clock.time += 0.1
    sender.put_audio("item", 400.0, {})
    assert sender.playback_ends_at() == pytest.approx(clock.time + 0.7)
