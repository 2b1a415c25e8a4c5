"""Invariants of a queue with one reader."""

import asyncio

from sglang_omni.engines.runtime.single_reader_queue import SingleReaderQueue


async def test_items_come_in_the_order_they_went() -> None:
    queue: SingleReaderQueue[int] = SingleReaderQueue()
    queue.put(1)
    reading = asyncio.gather(*[take(queue, 4)])
    for item in (2, 3):
        queue.put(item)
    await asyncio.sleep(0)
    await asyncio.sleep(0)
    queue.put(4)
    assert await reading == [[1, 2, 3, 4]]


async def test_a_cancelled_reader_takes_nothing() -> None:
    queue: SingleReaderQueue[int] = SingleReaderQueue()
    waiting = asyncio.create_task(queue.get())
    await asyncio.sleep(0)
    queue.put(1)
    waiting.cancel()
    await asyncio.wait({waiting})
    assert waiting.cancelled()
    assert await queue.get() == 1


async def test_an_item_after_a_cancelled_reader_is_kept_for_the_next() -> None:
    queue: SingleReaderQueue[int] = SingleReaderQueue()
    waiting = asyncio.create_task(queue.get())
    await asyncio.sleep(0)
    waiting.cancel()
    await asyncio.wait({waiting})
    queue.put(1)
    assert await asyncio.wait_for(queue.get(), timeout=1) == 1


async def take(queue: SingleReaderQueue[int], count: int) -> list[int]:
    return [await queue.get() for _ in range(count)]


async def test_what_is_wanted_of_what_waits_is_taken_without_waiting() -> None:
    queue: SingleReaderQueue[int] = SingleReaderQueue()
    assert queue.take_while(lambda item: True) == []
    for item in (1, 2, 30, 4):
        queue.put(item)
    assert queue.take_while(lambda item: item < 10) == [1, 2]
    assert queue.num_waiting == 2
    assert [await queue.get(), await queue.get()] == [30, 4]
