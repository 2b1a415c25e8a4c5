"""What a worker gives in one turn of its loop leaves as one message."""

import asyncio
from collections.abc import AsyncGenerator
from contextlib import suppress
from typing import Any

from sglang_omni.engines.runtime.stream_loop import StreamLoop, _ProbeSchedule
from sglang_omni.engines.runtime.transport import (
    Cancel,
    Failed,
    FromEngine,
    Outputs,
    Submit,
    encode,
)
from sglang_omni.protocol.errors import InvalidRequest
from tests.engines.runtime.toy_workers import Number


class Sent:
    """An sender that keeps what it is given, if it can be encoded."""

    def __init__(self) -> None:
        self.messages: list[FromEngine] = []

    def send(self, message: FromEngine) -> None:
        encode(message)
        self.messages.append(message)


class Steps:
    """Gives every request a number at each step.

    One is refused after the first, and the baggage of another cannot be sent.
    """

    def __init__(self) -> None:
        self.ended = asyncio.Condition()

    async def run(self, request_id: str, request: Any) -> AsyncGenerator[Number, None]:
        for value in range(3):
            async with self.ended:
                await self.ended.wait()
            if request == "refused" and value:
                raise InvalidRequest("no more")
            yield Number(value, value == 2, (lambda: None) if request == "heavy" else None)

    async def step(self) -> None:
        for _ in range(5):
            await asyncio.sleep(0)
        async with self.ended:
            self.ended.notify_all()
        for _ in range(20):
            await asyncio.sleep(0)


async def messages_of(*requests: str) -> list[FromEngine]:
    worker, sent = Steps(), Sent()
    # They have of a worker and a sender what these tests use.
    stand_ins: tuple[Any, Any] = worker, sent
    loop = StreamLoop(*stand_ins, 32)
    for request in requests:
        loop.deliver(Submit(request, request))
    for _ in range(3):
        await worker.step()
    return sent.messages


async def test_a_step_of_many_requests_is_few_messages_and_each_order_is_kept() -> None:
    messages = await messages_of(*"abcdefgh")
    outputs = [pair for one in messages if isinstance(one, Outputs) for pair in one.outputs]
    assert len(outputs) == 24
    assert len(messages) < 24
    for name in "abcdefgh":
        assert [output.value for request, output in outputs if request == name] == [0, 1, 2]


async def test_a_failure_comes_after_what_its_request_gave() -> None:
    first, *_, last = [m for m in await messages_of("refused") if isinstance(m, Outputs | Failed)]
    assert isinstance(first, Outputs)
    assert isinstance(last, Failed)
    assert isinstance(last.error, InvalidRequest)


async def test_an_output_that_cannot_be_sent_fails_its_own_request() -> None:
    messages = await messages_of("heavy", "a")
    assert [one.request_id for one in messages if isinstance(one, Failed)] == ["heavy"]
    given = [pair for one in messages if isinstance(one, Outputs) for pair in one.outputs]
    assert [(name, output.value) for name, output in given] == [("a", 0), ("a", 1), ("a", 2)]


class LosesCancellations:
    """Gives numbers without end, and loses a cancellation that comes while it waits for the next.

    `asyncio.wait_for` does so until Python 3.12 if the number comes in the same turn of the loop.
    """

    def __init__(self) -> None:
        self.is_closed = False

    async def run(self, request_id: str, request: Any) -> AsyncGenerator[Number, None]:
        try:
            while True:
                with suppress(asyncio.CancelledError):
                    await asyncio.sleep(0)
                yield Number(0, last=False)
        finally:
            self.is_closed = True


async def test_a_cancelled_request_ends_though_its_worker_lost_the_cancellation() -> None:
    worker, sent = LosesCancellations(), Sent()
    stand_ins: tuple[Any, Any] = worker, sent
    # So many credits that flow control never waits: that would see the cancellation.
    loop = StreamLoop(*stand_ins, 1_000_000)
    loop.deliver(Submit("a", "a"))
    for _ in range(10):
        await asyncio.sleep(0)
    loop.deliver(Cancel("a"))
    for _ in range(10):
        await asyncio.sleep(0)
    assert worker.is_closed
    given = len(sent.messages)
    for _ in range(10):
        await asyncio.sleep(0)
    assert len(sent.messages) == given > 0


def probes(schedule: _ProbeSchedule, turns: list[tuple[bool, float]]) -> str:
    """For each turn, whether requests are at work and what the worker counts, if it asks."""
    asked = ""
    for working, running in turns:
        due = schedule.is_due(working)
        asked += "x" if due else "."
        if due:
            schedule.record({"running": running})
    return asked


def test_a_worker_is_asked_in_each_turn_while_it_works_and_in_each_fourth_idle_counters() -> None:
    schedule = _ProbeSchedule()
    assert probes(schedule, [(False, 0)] * 10) == "xx...x...x"
    assert probes(schedule, [(True, 1)] * 5) == "xxxxx"
    # What a request leaves in the counters is followed until it has gone.
    assert probes(schedule, [(False, 1), *[(False, 0)] * 6]) == "xxx...x"
