"""Separate the reasoning of an answer from its text."""

from collections.abc import AsyncGenerator
from contextlib import aclosing

from sglang_omni.models.chat import ReasoningParser, Thought


async def with_thoughts(
    text: AsyncGenerator[str, None], parser: ReasoningParser
) -> AsyncGenerator[str | Thought, None]:
    """Yield the deltas of an answer, its reasoning as `Thought`. Closing this generator closes
    `text`."""
    async with aclosing(text):
        async for delta in text:
            for part in parser.push(delta):
                yield part
    for part in parser.finish():
        yield part
