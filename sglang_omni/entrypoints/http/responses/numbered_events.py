"""The events of several choices as one stream."""

from collections.abc import AsyncGenerator, Sequence
from contextlib import aclosing
from typing import TypeVar

from sglang_omni.pipeline.async_streams import merge

T = TypeVar("T")


def number_events(
    choices: Sequence[AsyncGenerator[T, None]],
) -> AsyncGenerator[tuple[int, T], None]:
    """Return the events of all choices as they arrive, each with the index of its choice."""
    sources = [_number(index, events) for index, events in enumerate(choices)]
    return sources[0] if len(sources) == 1 else merge(*sources)


async def _number(
    index: int, events: AsyncGenerator[T, None]
) -> AsyncGenerator[tuple[int, T], None]:
    async with aclosing(events):
        async for event in events:
            yield index, event
