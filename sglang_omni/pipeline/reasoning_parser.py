"""Split an answer into its reasoning and its content."""

from collections.abc import AsyncGenerator
from contextlib import aclosing

from sglang_omni.models.chat import Reasoning, ReasoningParser


async def split_reasoning(
    text: AsyncGenerator[str, None], parser: ReasoningParser
) -> AsyncGenerator[str | Reasoning, None]:
    """Yield the answer's deltas, with its reasoning as `Reasoning`.

    Closing this generator closes `text`.
    """
    async with aclosing(text):
        async for delta in text:
            for part in parser.push(delta):
                yield part
    for part in parser.finish():
        yield part
