"""Tee and merge: order, errors, closing, and that no task outlives its stream."""

import asyncio
from collections.abc import AsyncGenerator, AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import pytest

from sglang_omni.pipeline.async_streams import MERGE_WINDOW, Tee, gather_or_cancel, merge

pytestmark = pytest.mark.usefixtures("no_task_is_left")


class Source:
    """A stream of `items` that then ends, raises or hangs; knows how far it got and its end."""

    def __init__(
        self,
        *items: Any,
        then: BaseException | None = None,
        hang: bool = False,
        on_close: Exception | None = None,
    ) -> None:
        self.items, self.then, self.hang, self.on_close = items, then, hang, on_close
        self.produced, self.closed = 0, False

    async def stream(self) -> AsyncGenerator[Any, None]:
        try:
            for item in self.items:
                self.produced += 1
                yield item
            if self.hang:
                await asyncio.Event().wait()
            if self.then is not None:
                raise self.then
        finally:
            self.closed = True
            if self.on_close is not None:
                raise self.on_close


async def soon() -> None:
    """Give every other task as many turns as it can use."""
    for _ in range(20):
        await asyncio.sleep(0)


async def take(stream: AsyncIterator[Any], count: int) -> list[Any]:
    async with asyncio.timeout(5):
        return [await anext(stream) for _ in range(count)]


async def collect(stream: AsyncIterator[Any]) -> list[Any]:
    async with asyncio.timeout(5):
        return [item async for item in stream]


async def close(stream: AsyncGenerator[Any, None]) -> None:
    async with asyncio.timeout(5):
        await stream.aclose()


@asynccontextmanager
async def closed_after(
    stream: AsyncGenerator[Any, None],
) -> AsyncIterator[AsyncGenerator[Any, None]]:
    try:
        yield stream
    finally:
        await close(stream)


async def test_both_readers_see_every_item_in_order() -> None:
    tee = Tee(Source(*range(100)).stream())
    seen = await asyncio.gather(collect(tee.read()), collect(tee.read_copy()))
    assert [*seen] == [[*range(100)]] * 2


async def test_the_second_reader_may_lag_without_bound() -> None:
    tee = Tee(Source(*range(10_000)).stream())
    assert await collect(tee.read()) == [*range(10_000)]
    assert await collect(tee.read_copy()) == [*range(10_000)]


async def test_the_first_reader_drives_the_source() -> None:
    source = Source(*range(10))
    tee = Tee(source.stream())
    lagging = asyncio.create_task(collect(tee.read_copy()))
    await soon()
    assert source.produced == 0
    first = tee.read()
    await take(first, 3)
    assert source.produced == 3
    await close(first)
    assert await lagging == [0, 1, 2]


@pytest.mark.parametrize("end", ["error", "closed"])
async def test_the_copy_ends_where_the_stream_ended(end: str) -> None:
    source = Source(1, 2, then=ValueError("engine"), hang=end == "closed")
    tee = Tee(source.stream())
    first = tee.read()
    await take(first, 2)
    if end == "error":
        with pytest.raises(ValueError, match="engine"):
            await anext(first)
    await close(first)
    assert source.closed
    assert await collect(tee.read_copy()) == [1, 2]


async def test_a_merge_keeps_the_order_of_each_source_and_loses_nothing() -> None:
    streams = [Source(*((name, i) for i in range(50))).stream() for name in "abc"]
    merged = await collect(merge(*streams))
    assert len(merged) == 150
    for name in "abc":
        assert [i for who, i in merged if who == name] == [*range(50)]


async def test_items_of_one_source_do_not_wait_for_another() -> None:
    slow = Source("late", hang=True)
    async with closed_after(merge(slow.stream(), Source(*range(30)).stream())) as merged:
        assert set(await take(merged, 31)) == {"late", *range(30)}


async def test_a_merge_of_nothing_and_of_empty_sources_ends() -> None:
    assert await collect(merge()) == []
    assert await collect(merge(Source().stream(), Source().stream())) == []


async def test_sources_run_ahead_of_the_reader_by_the_window_only() -> None:
    source = Source(*range(100))
    async with closed_after(merge(source.stream())) as merged:
        assert await take(merged, 1) == [0]
        await soon()
        # The window's, the one that was read and the one that waits for room.
        assert source.produced == MERGE_WINDOW + 2


async def test_an_error_closes_the_other_sources_and_is_raised_once() -> None:
    error, other = ValueError("engine"), Source("other", hang=True)
    merged = merge(other.stream(), Source(1, 2, then=error).stream())
    seen = []
    with pytest.raises(ValueError, match="engine") as raised:
        while True:
            seen += await take(merged, 1)
    assert raised.value is error
    assert set(seen) == {"other", 1, 2}
    assert other.closed
    assert await collect(merged) == []


async def test_the_first_of_two_errors_is_the_one_raised() -> None:
    first, second = Source(then=ValueError("first")), Source(hang=True, on_close=KeyError("second"))
    with pytest.raises(ValueError, match="first"):
        await collect(merge(second.stream(), first.stream()))
    assert second.closed


async def test_a_source_that_cancels_itself_does_not_hang_the_merge() -> None:
    other = Source(hang=True)
    merged = merge(other.stream(), Source(1, then=asyncio.CancelledError()).stream())
    with pytest.raises(asyncio.CancelledError):
        await collect(merged)
    assert other.closed


async def test_closing_a_merge_closes_every_source() -> None:
    sources = [Source(1, hang=True), Source(*range(100)), Source()]
    merged = merge(*(source.stream() for source in sources))
    await take(merged, 5)
    await close(merged)
    assert [source.closed for source in sources] == [True] * 3
    assert sources[1].produced < 100


async def test_closing_a_merge_that_nobody_iterated_begins_nothing() -> None:
    source = Source(1)
    merged = merge(source.stream())
    await close(merged)
    await soon()
    assert source.produced == 0
    assert await collect(merged) == []


async def test_cancelling_a_merge_in_the_turn_it_began_closes_a_source_begun_before() -> None:
    source, loop = Source(1, 2, hang=True), asyncio.get_running_loop()
    stream = source.stream()
    await anext(stream)
    reading = asyncio.create_task(collect(merge(stream)))
    loop.call_soon(reading.cancel)
    await asyncio.wait({reading}, timeout=5)
    assert reading.cancelled()
    assert source.closed


async def test_cancelling_the_reader_closes_every_source() -> None:
    sources = [Source(hang=True), Source(1, hang=True)]
    reading = asyncio.create_task(collect(merge(*(source.stream() for source in sources))))
    await soon()
    reading.cancel()
    await asyncio.wait({reading}, timeout=5)
    assert reading.cancelled()
    assert all(source.closed for source in sources)


@pytest.mark.parametrize("on_close", [None, ValueError("while closing")])
async def test_closing_ends_pumps_that_wait_for_room(on_close: ValueError | None) -> None:
    """Also when a source fails on its way out, and nobody reads any more."""
    sources = [Source(*range(100), on_close=on_close) for _ in range(3)]
    merged = merge(*(source.stream() for source in sources))
    await anext(merged)
    await soon()
    await close(merged)
    assert all(source.closed for source in sources)
    assert sum(source.produced for source in sources) == MERGE_WINDOW + 1 + len(sources)


async def test_results_come_in_order_though_work_ends_out_of_order() -> None:
    async def after(seconds: float) -> float:
        await asyncio.sleep(seconds)
        return seconds

    assert await gather_or_cancel([after(0.02), after(0.0), after(0.01)]) == [0.02, 0.0, 0.01]
    assert await gather_or_cancel([]) == []


async def test_the_first_error_cancels_the_other_work() -> None:
    cancelled = []

    async def patient() -> None:
        try:
            await asyncio.Event().wait()
        except asyncio.CancelledError:
            cancelled.append(True)
            raise

    async def failing() -> None:
        await asyncio.sleep(0)
        raise ValueError("no")

    with pytest.raises(ValueError, match="no"):
        await gather_or_cancel([patient(), failing(), patient()])
    assert cancelled == [True, True]
