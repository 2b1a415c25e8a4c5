"""Calls of functions in an answer: told apart from its text, and kept from being spoken."""

from collections.abc import AsyncGenerator
from contextlib import aclosing

from sglang_omni.models.chat import Thought, ToolParser
from sglang_omni.protocol.tools import CallPart, ToolCall

Part = CallPart | Thought


async def with_calls(
    text: AsyncGenerator[str | Thought, None], parser: ToolParser, parallel: bool = True
) -> AsyncGenerator[Part, None]:
    """The answer's deltas, calls among them as such; it ends after the first call unless there may
    be several in `parallel`. Closing this generator closes `text`."""
    async with aclosing(text):
        async for delta in text:
            if isinstance(delta, Thought):
                yield delta
                continue
            for part in parser.push(delta):
                yield part
                if isinstance(part, ToolCall) and not parallel:
                    return
    for part in parser.finish():
        yield part


async def only_text(answer: AsyncGenerator[Part, None]) -> AsyncGenerator[str, None]:
    """What of an answer can be spoken. Closing this generator closes `answer`."""
    async with aclosing(answer):
        async for part in answer:
            if isinstance(part, str):
                yield part
