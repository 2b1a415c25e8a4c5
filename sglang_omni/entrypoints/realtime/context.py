"""Converts a conversation to the messages of the model's prompt."""

from collections.abc import Iterable, Iterator, Sequence

import numpy as np

from sglang_omni.entrypoints.realtime.audio_codec import decode_wav, encode_wav
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
from sglang_omni.entrypoints.requests.messages import LOW_DETAIL_PIXELS
from sglang_omni.pipeline.request import MediaPart, Message, TextPart
from sglang_omni.protocol.tools import ToolCall, ToolResult

Part = TextPart | MediaPart
JOINED_MS = 20_000
"""Turns that are longer together stay apart: Ming-mini hears at most 26 s at once."""


def build_messages(instructions: str, items: Iterable[Item]) -> tuple[Message, ...]:
    """Build the prompt's messages from the instructions and the conversation's items.

    The model takes one system message, the first, so the texts of system items are appended to the
    instructions. A spoken answer is represented by the words that were played. A call that was cut
    has no JSON that the model could read, so it is left out. Speech that a pause has split into
    several turns is joined. If the last message is not from the user or a tool, an empty user
    message is added, so that the model answers.
    """
    items = _join_split_speech(items)
    system = [instructions, *_iter_system_texts(items)]
    messages = [_to_system_message("\n\n".join(filter(None, system)))] if any(system) else []
    messages += [message for item in items if (message := _to_message(item)) is not None]
    if not messages or messages[-1].role not in ("user", "tool"):
        messages.append(Message("user", (TextPart(""),)))
    return tuple(messages)


def drop_oldest_half(items: Sequence[Item]) -> Sequence[Item]:
    """Return the later half of a conversation that exceeds the context length.

    Dropping half at a time keeps the number of attempts small, and the next turns keep their cached
    prefix.
    """
    return items[(len(items) + 1) // 2 :]


def _join_split_speech(items: Iterable[Item]) -> list[Item]:
    """Return the items of the prompt, with user audio that follows user audio joined to it.

    Between such turns there was no answer, or it was cancelled before any of it was heard, because
    the user went on after a pause.
    """
    joined: list[Item] = []
    for item in items:
        if isinstance(item, MessageItem) and item.role == "assistant" and not _to_message(item):
            continue
        both = _join(joined[-1], item) if joined else None
        if both is None:
            joined.append(item)
        else:
            joined[-1] = both
    return joined


def _join(earlier: Item, later: Item) -> Item | None:
    """Return both turns as one; None unless both are speech and short enough together."""
    first, second = _speech_of(earlier), _speech_of(later)
    if first is None or second is None:
        return None
    duration_ms = first.duration_ms + second.duration_ms
    if duration_ms > JOINED_MS:
        return None
    samples = np.concatenate([decode_wav(one.wav or b"") for one in (first, second)])
    return MessageItem(earlier.id, "user", (AudioContent(encode_wav(samples), duration_ms),))


def _speech_of(item: Item) -> AudioContent | None:
    """Return the audio of a user's turn that has nothing else."""
    match item:
        case MessageItem(role="user", content=(AudioContent(wav) as speech,)) if wav:
            return speech
        case _:
            return None


def _to_system_message(text: str) -> Message:
    return Message("system", (TextPart(text),))


def _iter_system_texts(items: Iterable[Item]) -> Iterator[str]:
    for item in items:
        if isinstance(item, MessageItem) and item.role == "system":
            yield from (part.text for part in item.content if isinstance(part, TextContent))


def _to_message(item: Item) -> Message | None:
    match item:
        case MessageItem(role="user" | "assistant" as role):
            parts = tuple(_iter_prompt_parts(item.id, item.content))
            return Message(role, parts) if parts else None
        case CallItem(status="completed"):
            return Message("assistant", (ToolCall(item.name, item.arguments),))
        case CallOutputItem():
            return Message("tool", (ToolResult(item.output),))
        case _:
            return None


def _iter_prompt_parts(item_id: str, content: Iterable[Content]) -> Iterator[Part]:
    for part in content:
        if (prompt_part := _to_prompt_part(item_id, part)) is not None:
            yield prompt_part


def _to_prompt_part(item_id: str, part: Content) -> Part | None:
    match part:
        case TextContent(text):
            return TextPart(text)
        case ImageContent(url, detail) if url:
            max_pixels = LOW_DETAIL_PIXELS if detail == "low" else None
            return MediaPart("image", (url,), f"item {item_id}", max_pixels)
        case AudioContent(wav) if wav:
            return MediaPart("audio", (wav,), f"item {item_id}")
        case AudioContent(_, _, transcript) if transcript:
            return TextPart(transcript)
        case SpeechContent() if part.transcript:
            return TextPart(part.transcript)
        case _:
            return None
