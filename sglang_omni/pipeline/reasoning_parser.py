"""Split an answer into its reasoning and its content."""

from collections.abc import AsyncGenerator
from contextlib import aclosing

from sglang_omni.models.chat import Reasoning, ReasoningParser
from sglang_omni.pipeline.request import Started


async def split_reasoning(
    text: AsyncGenerator[str | Started, None], parser: ReasoningParser
) -> AsyncGenerator[str | Reasoning | Started, None]:
    """Yield the answer's deltas, with its reasoning as `Reasoning`.

    Closing this generator closes `text`.
    """
    async with aclosing(text):
        async for delta in text:
            if not isinstance(delta, str):
                yield delta
                continue
            for part in parser.push(delta):
                yield part
    for part in parser.finish():
        yield part
