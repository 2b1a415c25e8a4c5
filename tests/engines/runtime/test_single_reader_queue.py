"""Invariants of a queue with one reader."""

import asyncio

from sglang_omni.engines.runtime.single_reader_queue import SingleReaderQueue


async def test_items_come_in_the_order_they_went() -> None:
    box: SingleReaderQueue[int] = SingleReaderQueue()
    box.put(1)
    reading = asyncio.gather(*[take(box, 4)])
    for item in (2, 3):
        box.put(item)
    await asyncio.sleep(0)
    await asyncio.sleep(0)
    box.put(4)
    assert await reading == [[1, 2, 3, 4]]


async def test_a_cancelled_reader_takes_nothing() -> None:
    box: SingleReaderQueue[int] = SingleReaderQueue()
    waiting = asyncio.create_task(box.get())
    await asyncio.sleep(0)
    box.put(1)
    waiting.cancel()
    await asyncio.wait({waiting})
    assert waiting.cancelled()
    assert await box.get() == 1


async def test_an_item_after_a_cancelled_reader_is_kept_for_the_next() -> None:
    box: SingleReaderQueue[int] = SingleReaderQueue()
    waiting = asyncio.create_task(box.get())
    await asyncio.sleep(0)
    waiting.cancel()
    await asyncio.wait({waiting})
    box.put(1)
    assert await asyncio.wait_for(box.get(), timeout=1) == 1


async def take(box: SingleReaderQueue[int], count: int) -> list[int]:
    return [await box.get() for _ in range(count)]


async def test_what_is_wanted_of_what_waits_is_taken_without_waiting() -> None:
    box: SingleReaderQueue[int] = SingleReaderQueue()
    assert box.take_while(lambda item: True) == []
    for item in (1, 2, 30, 4):
        box.put(item)
    assert box.take_while(lambda item: item < 10) == [1, 2]
    assert box.waiting == 2
    assert [await box.get(), await box.get()] == [30, 4]
