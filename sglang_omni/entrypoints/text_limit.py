"""How much text a prompt may have: refused here, before anything is made of it."""

from collections.abc import Iterable, Iterator
from typing import Any

from sglang_omni.pipeline.preprocess import CHARACTERS_PER_TOKEN
from sglang_omni.protocol.chat import ChatBody, ChatMessage
from sglang_omni.protocol.errors import ContextExceeded
from sglang_omni.protocol.functions import ToolSpec
from sglang_omni.protocol.media import TextContentPart

FieldSizes = Iterator[tuple[str, int]]


def check_text(fields: Iterable[tuple[str, int]], context_length: int) -> None:
    """Refuse texts that no context of `context_length` tokens can hold together.

    `fields` are the names of fields and the characters in each. Raises `ContextExceeded`, naming
    the field with which it is too much.
    """
    limit, total = CHARACTERS_PER_TOKEN * context_length, 0
    for name, size in fields:
        total += size
        if total > limit:
            raise ContextExceeded(
                f"{name}: the prompt has more than {limit} characters of text up to here, "
                f"{CHARACTERS_PER_TOKEN} for each of the context's {context_length} tokens",
                param=name,
            )


def chat_texts(body: ChatBody) -> FieldSizes:
    """The texts of a chat's prompt. Media, and what is accepted and not used, do not count."""
    for index, message in enumerate(body.messages):
        yield from _message_texts(message, f"messages.{index}")
    yield from tool_texts(body.tools, "tools")
    if body.response_format.type == "json_schema":
        yield "response_format", json_characters(body.response_format.json_schema.schema_)


def _message_texts(message: ChatMessage, path: str) -> FieldSizes:
    for index, part in enumerate(message.content):
        if isinstance(part, TextContentPart):
            yield f"{path}.content.{index}.text", len(part.text)
    for index, call in enumerate(message.tool_calls or ()):
        yield f"{path}.tool_calls.{index}.function.arguments", len(call.function.arguments)
    if message.audio is not None:
        yield f"{path}.audio.transcript", len(message.audio.transcript)


def tool_texts(tools: Iterable[ToolSpec], path: str) -> FieldSizes:
    """The texts of the list of functions."""
    for index, tool in enumerate(tools):
        function = tool.function
        yield f"{path}.{index}.function.description", len(function.description)
        yield f"{path}.{index}.function.parameters", json_characters(function.parameters)


def json_characters(value: Any) -> int:
    """Return how many characters the names and texts in decoded JSON have."""
    total, waiting = 0, [value]
    while waiting:
        one = waiting.pop()
        if isinstance(one, str):
            total += len(one)
        elif isinstance(one, dict):
            total += sum(map(len, one))
            waiting += one.values()
        elif isinstance(one, list):
            waiting += one
    return total
