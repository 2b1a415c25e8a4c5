"""Counts the answers that wait for their first output, so that drawing can give way to them."""

from collections.abc import AsyncGenerator
from contextlib import aclosing

from sglang_omni.engines.runtime.shared_count import SharedCount
from sglang_omni.pipeline.request import (
    AudioDelta,
    Event,
    ReasoningDelta,
    TextDelta,
)
from sglang_omni.protocol.tools import ToolCallStart

SPOKEN = (AudioDelta,)
WRITTEN = (TextDelta, ReasoningDelta, ToolCallStart)


class FirstOutputs:
    """The number of answers whose first output has not come, for other processes to read."""

    def __init__(self) -> None:
        """Create the count, of no answers. Raises `OSError` without a file descriptor."""
        self.waiting = SharedCount()

    async def track(
        self, events: AsyncGenerator[Event, None], is_spoken: bool
    ) -> AsyncGenerator[Event, None]:
        """Yield the events of an answer, which waits until its first audio or text, or its end."""
        first = SPOKEN if is_spoken else WRITTEN
        waits = True
        self.waiting.add(1)
        try:
            async with aclosing(events):
                async for event in events:
                    if waits and isinstance(event, first):
                        waits = False
                        self.waiting.add(-1)
                    yield event
        finally:
            if waits:
                self.waiting.add(-1)
