"""Streams in order: how many run, what order their items have, errors and closing."""

import asyncio
from collections.abc import AsyncGenerator
from contextlib import aclosing

import pytest

from sglang_omni.pipeline.async_streams import run_in_order

pytestmark = pytest.mark.usefixtures("no_task_is_left")


class Work:
    """Streams of two items each; stream `n` takes `delays[n]` seconds."""

    def __init__(self, delays: list[float], broken: int | None = None) -> None:
        self.delays, self.broken = delays, broken
        self.running = self.peak = self.started = 0
        self.sources_closed = False

    async def sources(self) -> AsyncGenerator[AsyncGenerator[str, None], None]:
        try:
            for number in range(len(self.delays)):
                yield self.stream(number)
        finally:
            self.sources_closed = True

    async def stream(self, number: int) -> AsyncGenerator[str, None]:
        self.started += 1
        self.running += 1
        self.peak = max(self.peak, self.running)
        try:
            yield f"{number}a"
            await asyncio.sleep(self.delays[number])
            if number == self.broken:
                raise ValueError(f"stream {number}")
            yield f"{number}b"
        finally:
            self.running -= 1


async def test_items_have_the_order_of_their_streams() -> None:
    work = Work([0.05, 0.0, 0.03, 0.0, 0.01])
    items = [item async for item in run_in_order(work.sources(), 3)]
    assert items == [f"{number}{letter}" for number in range(5) for letter in "ab"]
    assert work.peak == 3
    assert (work.running, work.sources_closed) == (0, True)


async def test_one_at_a_time_is_possible() -> None:
    work = Work([0.0, 0.0, 0.0])
    assert len([item async for item in run_in_order(work.sources(), 1)]) == 6
    assert work.peak == 1


async def test_no_streams_are_no_items() -> None:
    assert [item async for item in run_in_order(Work([]).sources(), 2)] == []


async def test_an_error_comes_in_its_place() -> None:
    work = Work([0.03, 0.0, 5.0, 5.0], broken=1)
    items = []
    with pytest.raises(ValueError, match="stream 1"):
        async for item in run_in_order(work.sources(), 3):
            items.append(item)
    assert items == ["0a", "0b", "1a"]
    assert (work.running, work.sources_closed) == (0, True)


async def test_an_error_of_the_sources_comes_after_their_streams() -> None:
    async def sources() -> AsyncGenerator[AsyncGenerator[str, None], None]:
        yield work.stream(0)
        raise ValueError("no more")

    work, items = Work([0.01]), []
    with pytest.raises(ValueError, match="no more"):
        async for item in run_in_order(sources(), 2):
            items.append(item)
    assert items == ["0a", "0b"]


async def test_closing_it_closes_every_stream() -> None:
    work = Work([5.0] * 6)
    async with aclosing(run_in_order(work.sources(), 4)) as items:
        assert await anext(items) == "0a"
        await asyncio.sleep(0.01)
        assert work.running == 4
    assert (work.running, work.sources_closed) == (0, True)


async def test_a_reader_that_waits_lets_no_more_than_the_limit_run() -> None:
    work = Work([0.0] * 10)
    async with aclosing(run_in_order(work.sources(), 2)) as items:
        await anext(items)
        await asyncio.sleep(0.05)
        assert work.started == 2
