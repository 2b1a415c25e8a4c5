"""Calls of functions in an answer: told apart from its text, and kept from being spoken."""

from collections.abc import AsyncGenerator
from contextlib import aclosing

from sglang_omni.models.ming.tools import CallReader, ToolCall


async def with_calls(text: AsyncGenerator[str, None]) -> AsyncGenerator[str | ToolCall, None]:
    """The answer's deltas, calls among them as such. Closing this generator closes `text`."""
    reader = CallReader()
    async with aclosing(text):
        async for delta in text:
            for part in reader.push(delta):
                yield part
    for part in reader.finish():
        yield part


async def only_text(answer: AsyncGenerator[str | ToolCall, None]) -> AsyncGenerator[str, None]:
    """What of an answer can be spoken. Closing this generator closes `answer`."""
    async with aclosing(answer):
        async for part in answer:
            if isinstance(part, str):
                yield part
