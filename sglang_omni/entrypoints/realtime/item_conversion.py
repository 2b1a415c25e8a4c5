"""Converts items from the client's form to the conversation's."""

import json
from collections.abc import Mapping
from dataclasses import replace

import numpy as np

from sglang_omni.entrypoints.realtime.audio_codec import (
    SAMPLES_PER_MS,
    InputDecoder,
    WireFormat,
    decode_base64,
    encode_wav,
)
from sglang_omni.entrypoints.realtime.item_schema import (
    CallBody,
    CallOutputBody,
    InputAudio,
    InputImage,
    InputText,
    ItemReference,
    MessageBody,
    OutputAudio,
    OutputText,
    PartBody,
)
from sglang_omni.entrypoints.realtime.items import (
    AudioContent,
    CallItem,
    CallOutputItem,
    Content,
    ImageContent,
    Item,
    MessageItem,
    SpeechContent,
    SpokenSegment,
    TextContent,
    make_id,
)
from sglang_omni.protocol.errors import InvalidRequest


class InvalidResponseInput(InvalidRequest):
    """The `input` of a response refers to an item that does not exist."""

    code = "bad_response_create"


ALLOWED_PARTS = {
    "system": (InputText,),
    "user": (InputText, InputAudio, InputImage),
    "assistant": (OutputText, OutputAudio),
}


def parse_item(body: MessageBody | CallBody | CallOutputBody, wire: WireFormat, path: str) -> Item:
    """Convert one item.

    Args:
        body: Item as the client wrote it.
        wire: Format of its audio.
        path: Path of the item in the event, for errors.

    Raises:
        InvalidRequest: A field is invalid; `param` names it.
    """
    item_id = body.id or make_id("item")
    match body:
        case MessageBody():
            content = (
                _parse_part(part, body.role, wire, f"{path}.content.{index}")
                for index, part in enumerate(body.content)
            )
            return MessageItem(item_id, body.role, tuple(content))
        case CallBody():
            _check_arguments(body.arguments, f"{path}.arguments")
            return CallItem(item_id, body.call_id or make_id("call"), body.name, body.arguments)
        case CallOutputBody():
            return CallOutputItem(item_id, body.call_id, body.output)


def parse_items(
    bodies: list[MessageBody | CallBody | CallOutputBody | ItemReference],
    wire: WireFormat,
    items_by_id: Mapping[str, Item],
) -> list[Item]:
    """Convert the `input` of a response, which may refer to items of the conversation.

    Raises:
        InvalidRequest: A field is invalid; `param` names it.
    """
    return [
        _resolve_reference(body.id, items_by_id, f"response.input.{index}.id")
        if isinstance(body, ItemReference)
        else parse_item(body, wire, f"response.input.{index}")
        for index, body in enumerate(bodies)
    ]


def to_audio_content(samples: np.ndarray) -> AudioContent:
    """Convert int16 [samples] at 16 kHz to content. Without samples it has no URI."""
    duration_ms = len(samples) // SAMPLES_PER_MS
    return AudioContent(encode_wav(samples) if len(samples) else None, duration_ms)


def _resolve_reference(item_id: str, items_by_id: Mapping[str, Item], path: str) -> Item:
    if item_id not in items_by_id:
        raise InvalidResponseInput(f"{path}: no item {item_id!r} in the conversation", param=path)
    return items_by_id[item_id]


def _parse_part(part: PartBody, role: str, wire: WireFormat, path: str) -> Content:
    if not isinstance(part, ALLOWED_PARTS[role]):
        raise InvalidRequest(
            f"{path}.type: {part.type!r} is not allowed for the role {role}", param=f"{path}.type"
        )
    match part:
        case InputText() | OutputText():
            return TextContent(part.text)
        case InputImage():
            return ImageContent(part.image_url, part.detail)
        case OutputAudio():
            return SpeechContent((SpokenSegment(part.transcript, 0.0),))
        case InputAudio():
            return _parse_audio(part, wire, path)


def _parse_audio(part: InputAudio, wire: WireFormat, path: str) -> AudioContent:
    if part.audio is None and part.transcript is None:
        raise InvalidRequest(f"{path}.audio: Field required", param=f"{path}.audio")
    if part.audio is None:
        return AudioContent(None, 0, part.transcript)
    decoder = InputDecoder(wire)
    samples = decoder.decode(decode_base64(part.audio, f"{path}.audio"))
    content = to_audio_content(np.concatenate((samples, decoder.flush())))
    return replace(content, transcript=part.transcript)


def _check_arguments(arguments: str, path: str) -> None:
    try:
        json.loads(arguments)
    except (ValueError, RecursionError):
        raise InvalidRequest(f"{path}: not valid JSON", param=path) from None
