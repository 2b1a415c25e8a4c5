"""What takes too long ends, at whatever stage, and its work with it."""

import asyncio
from collections.abc import AsyncGenerator

import pytest

from sglang_omni.admission.timeout import with_timeout
from sglang_omni.protocol.errors import DeadlineExceeded


class Source:
    """Counts, with a pause before each number; knows whether it was closed."""

    def __init__(self, pause_s: float) -> None:
        self.pause_s, self.closed = pause_s, False

    async def items(self) -> AsyncGenerator[int, None]:
        try:
            for number in range(5):
                await asyncio.sleep(self.pause_s)
                yield number
        finally:
            self.closed = True


async def test_what_is_in_time_passes() -> None:
    source = Source(0)
    assert [one async for one in with_timeout(source.items(), 5)] == [0, 1, 2, 3, 4]
    assert source.closed


@pytest.mark.parametrize("pause_s", [60, 0.03])
async def test_what_is_late_fails_and_is_closed(pause_s: float) -> None:
    source = Source(pause_s)
    with pytest.raises(DeadlineExceeded, match=r"took longer than 0\.05 s") as late:
        [one async for one in with_timeout(source.items(), 0.05)]
    assert late.value.status == 504
    assert source.closed


async def test_the_reader_is_never_interrupted() -> None:
    source = Source(0)
    items = with_timeout(source.items(), 0.05)
    assert await anext(items) == 0
    await asyncio.sleep(0.1)  # Past the deadline, in the reader's own time.
    with pytest.raises(DeadlineExceeded):
        # One that is there at once may pass; no more than that.
        await anext(items)
        await anext(items)
    assert source.closed


async def test_to_be_cancelled_is_not_to_be_late() -> None:
    source = Source(60)

    async def read() -> list[int]:
        return [one async for one in with_timeout(source.items(), 5)]

    reading = asyncio.create_task(read())
    await asyncio.sleep(0.02)
    reading.cancel()
    with pytest.raises(asyncio.CancelledError):
        await reading
    assert source.closed


async def test_a_task_that_met_a_deadline_can_be_cancelled_and_time_out_as_before() -> None:
    with pytest.raises(DeadlineExceeded):
        [one async for one in with_timeout(Source(60).items(), 0.01)]
    task = asyncio.current_task()
    assert task is not None
    assert not task.cancelling()
    with pytest.raises(TimeoutError):
        async with asyncio.timeout(0.01):
            [one async for one in with_timeout(Source(60).items(), 5)]
