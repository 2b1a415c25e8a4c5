"""A limit on the text of a prompt, checked before the text is processed."""

from collections.abc import Iterable, Iterator
from typing import Any

from sglang_omni.pipeline.preprocess import CHARACTERS_PER_TOKEN
from sglang_omni.protocol.chat import ChatBody, ChatMessage
from sglang_omni.protocol.errors import ContextExceeded
from sglang_omni.protocol.functions import ToolSpec
from sglang_omni.protocol.media import TextContentPart

FieldSizes = Iterator[tuple[str, int]]


def check_text_length(fields: Iterable[tuple[str, int]], context_length: int) -> None:
    """Check that texts can fit into a context of `context_length` tokens.

    Args:
        fields: Names of fields with the number of characters of each.
        context_length: Tokens of the context.

    Raises:
        ContextExceeded: The texts are too long; the error names the first field over the limit.
    """
    limit, total = CHARACTERS_PER_TOKEN * context_length, 0
    for name, size in fields:
        total += size
        if total > limit:
            raise ContextExceeded(
                f"{name}: the prompt up to this field has more than {limit} characters of text, "
                f"{CHARACTERS_PER_TOKEN} for each of the context's {context_length} tokens",
                param=name,
            )


def iterate_chat_texts(body: ChatBody) -> FieldSizes:
    """Yield the field and size of each text in a chat's prompt.

    Media, and fields that are accepted but not used, do not count.
    """
    for index, message in enumerate(body.messages):
        yield from _iterate_message_texts(message, f"messages.{index}")
    yield from iterate_tool_texts(body.tools, "tools")
    if body.response_format.type == "json_schema":
        yield "response_format", count_json_characters(body.response_format.json_schema.schema_)


def _iterate_message_texts(message: ChatMessage, path: str) -> FieldSizes:
    for index, part in enumerate(message.content):
        if isinstance(part, TextContentPart):
            yield f"{path}.content.{index}.text", len(part.text)
    for index, call in enumerate(message.tool_calls or ()):
        yield f"{path}.tool_calls.{index}.function.arguments", len(call.function.arguments)
    if message.audio is not None:
        yield f"{path}.audio.transcript", len(message.audio.transcript)


def iterate_tool_texts(tools: Iterable[ToolSpec], path: str) -> FieldSizes:
    """Yield the field and size of each text in a list of tools."""
    for index, tool in enumerate(tools):
        function = tool.function
        yield f"{path}.{index}.function.description", len(function.description)
        yield f"{path}.{index}.function.parameters", count_json_characters(function.parameters)


def count_json_characters(value: Any) -> int:
    """Return the number of characters in all names and strings of decoded JSON."""
    total, stack = 0, [value]
    while stack:
        item = stack.pop()
        if isinstance(item, str):
            total += len(item)
        elif isinstance(item, dict):
            total += sum(map(len, item))
            stack += item.values()
        elif isinstance(item, list):
            stack += item
    return total
