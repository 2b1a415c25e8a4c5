"""What takes too long ends, at whatever stage, and its work with it."""

import asyncio
from collections.abc import AsyncGenerator

import pytest

from sglang_omni.admission.deadline import within
from sglang_omni.errors import DeadlineExceeded


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
    assert [one async for one in within(source.items(), 5)] == [0, 1, 2, 3, 4]
    assert source.closed


@pytest.mark.parametrize("pause_s", [60, 0.03])
async def test_what_is_late_fails_and_is_closed(pause_s: float) -> None:
    source = Source(pause_s)
    with pytest.raises(DeadlineExceeded, match=r"not done within 0\.05 s") as late:
        [one async for one in within(source.items(), 0.05)]
    assert late.value.status == 504
    assert source.closed


async def test_the_reader_is_never_interrupted() -> None:
    source = Source(0)
    items = within(source.items(), 0.05)
    assert await anext(items) == 0
    await asyncio.sleep(0.1)  # Past the deadline, in the reader's own time.
    with pytest.raises(DeadlineExceeded):
        # One that is there at once may pass; no more than that.
        await anext(items)
        await anext(items)
    assert source.closed
