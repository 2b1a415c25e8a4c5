"""The events of several choices as one stream."""

from collections.abc import AsyncGenerator, Sequence
from contextlib import aclosing

from sglang_omni.pipeline.async_streams import merge
from sglang_omni.pipeline.request import Event

NumberedEvents = AsyncGenerator[tuple[int, Event], None]


def number_events(choices: Sequence[AsyncGenerator[Event, None]]) -> NumberedEvents:
    """Return the events of all choices as they arrive, each with the index of its choice."""
    sources = [_number(index, events) for index, events in enumerate(choices)]
    return sources[0] if len(sources) == 1 else merge(*sources)


async def _number(index: int, events: AsyncGenerator[Event, None]) -> NumberedEvents:
    async with aclosing(events):
        async for event in events:
            yield index, event
