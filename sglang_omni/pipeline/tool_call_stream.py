"""Separate the tool calls of an answer from its text."""

from collections.abc import AsyncGenerator
from contextlib import aclosing

from sglang_omni.models.chat import Reasoning, ToolParser
from sglang_omni.pipeline.request import Started
from sglang_omni.protocol.tools import CallPart, ToolCall

Part = CallPart | Reasoning


async def split_tool_calls(
    text: AsyncGenerator[str | Reasoning | Started, None],
    parser: ToolParser,
    parallel: bool = True,
) -> AsyncGenerator[Part | Started, None]:
    """Yield the answer's deltas, with its tool calls parsed.

    Without `parallel` the stream ends after the first call. Closing this generator closes `text`.
    """
    async with aclosing(text):
        async for delta in text:
            if not isinstance(delta, str):
                yield delta
                continue
            for part in parser.push(delta):
                yield part
                if isinstance(part, ToolCall) and not parallel:
                    return
    for part in parser.finish():
        yield part


async def select_text(answer: AsyncGenerator[Part | Started, None]) -> AsyncGenerator[str, None]:
    """Yield the text of an answer, which can be spoken. Closing this generator closes `answer`."""
    async with aclosing(answer):
        async for part in answer:
            if isinstance(part, str):
                yield part
