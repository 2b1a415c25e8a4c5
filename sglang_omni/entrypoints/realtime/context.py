"""The conversation as the model reads it."""

from collections.abc import Iterable, Iterator, Sequence

from sglang_omni.entrypoints.http.message_content import LOW_DETAIL_PIXELS
from sglang_omni.entrypoints.realtime.items import (
    AudioContent,
    CallItem,
    CallOutputItem,
    Content,
    ImageContent,
    Item,
    MessageItem,
    SpeechContent,
    TextContent,
)
from sglang_omni.pipeline.request import MediaPart, Message, TextPart
from sglang_omni.protocol.tools import ToolCall, ToolResult

Part = TextPart | MediaPart


def to_messages(instructions: str, items: Iterable[Item]) -> tuple[Message, ...]:
    """The prompt's messages: instructions, then what was said.

    The model takes one system message, the first: what system items say joins the instructions.
    A spoken answer stands with the words that were heard. Where nobody asked anything last, an
    empty turn of the user lets the model speak.
    """
    known = list(items)
    system = [instructions, *_system_texts(known)]
    messages = [_system("\n\n".join(filter(None, system)))] if any(system) else []
    messages += [message for item in known if (message := _message(item)) is not None]
    if not messages or messages[-1].role not in ("user", "tool"):
        messages.append(Message("user", (TextPart(""),)))
    return tuple(messages)


def without_oldest(items: Sequence[Item]) -> Sequence[Item]:
    """The later half of a conversation, for a context that cannot hold all of it.

    Half at a time, so that few prompts are tried, and the next turns keep their cached prefix.
    """
    return items[(len(items) + 1) // 2 :]


def _system(text: str) -> Message:
    return Message("system", (TextPart(text),))


def _system_texts(items: Iterable[Item]) -> Iterator[str]:
    for item in items:
        if isinstance(item, MessageItem) and item.role == "system":
            yield from (part.text for part in item.content if isinstance(part, TextContent))


def _message(item: Item) -> Message | None:
    match item:
        case MessageItem(role="user" | "assistant" as role):
            parts = tuple(_parts(item.id, item.content))
            return Message(role, parts) if parts else None
        case CallItem():
            return Message("assistant", (ToolCall(item.name, item.arguments),))
        case CallOutputItem():
            return Message("tool", (ToolResult(item.output),))
        case _:
            return None


def _parts(item_id: str, content: Iterable[Content]) -> Iterator[Part]:
    for part in content:
        if (said := _part(item_id, part)) is not None:
            yield said


def _part(item_id: str, part: Content) -> Part | None:
    match part:
        case TextContent(text):
            return TextPart(text)
        case ImageContent(url, detail) if url:
            max_pixels = LOW_DETAIL_PIXELS if detail == "low" else None
            return MediaPart("image", (url,), f"item {item_id}", max_pixels)
        case AudioContent(uri) if uri:
            return MediaPart("audio", (uri,), f"item {item_id}")
        case AudioContent(_, _, transcript) if transcript:
            return TextPart(transcript)
        case SpeechContent() if part.transcript:
            return TextPart(part.transcript)
        case _:
            return None
