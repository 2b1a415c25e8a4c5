"""Items as clients write them, to items as the conversation keeps them."""

import json
from collections.abc import Mapping

import numpy as np

from sglang_omni.entrypoints.realtime.audio_codec import (
    SAMPLES_PER_MS,
    InputDecoder,
    WireFormat,
    clip_uri,
    from_base64,
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
    new_id,
)
from sglang_omni.protocol.errors import InvalidRequest


class BadResponse(InvalidRequest):
    """A response cannot be made as it was asked for."""

    code = "bad_response_create"


PARTS_OF = {
    "system": (InputText,),
    "user": (InputText, InputAudio, InputImage),
    "assistant": (OutputText, OutputAudio),
}


def to_item(body: MessageBody | CallBody | CallOutputBody, wire: WireFormat, path: str) -> Item:
    """An item of the client's. `wire` is the coding of its audio, `path` its place in the event.

    Raises `InvalidRequest`, naming the field.
    """
    item_id = body.id or new_id("item")
    match body:
        case MessageBody():
            parts = enumerate(body.content)
            content = (_part(p, body.role, wire, f"{path}.content.{n}") for n, p in parts)
            return MessageItem(item_id, body.role, tuple(content))
        case CallBody():
            _check_arguments(body.arguments, f"{path}.arguments")
            return CallItem(item_id, body.call_id or new_id("call"), body.name, body.arguments)
        case CallOutputBody():
            return CallOutputItem(item_id, body.call_id, body.output)


def to_items(
    bodies: list[MessageBody | CallBody | CallOutputBody | ItemReference],
    wire: WireFormat,
    known: Mapping[str, Item],
) -> list[Item]:
    """The `input` of a response, which may refer to `known` items.

    Raises `InvalidRequest`, naming the field.
    """
    return [
        _referred(body.id, known, f"response.input.{index}.id")
        if isinstance(body, ItemReference)
        else to_item(body, wire, f"response.input.{index}")
        for index, body in enumerate(bodies)
    ]


def to_clip(samples: np.ndarray) -> AudioContent:
    """int16 [samples] at 16 kHz that the user said; without samples a clip of nothing."""
    ms = len(samples) // SAMPLES_PER_MS
    return AudioContent(clip_uri(samples) if len(samples) else None, ms)


def _referred(item_id: str, known: Mapping[str, Item], path: str) -> Item:
    if item_id not in known:
        raise BadResponse(f"{path}: no item {item_id!r} in the conversation", param=path)
    return known[item_id]


def _part(part: PartBody, role: str, wire: WireFormat, path: str) -> Content:
    if not isinstance(part, PARTS_OF[role]):
        raise InvalidRequest(f"{path}.type: not for the role {role}", param=f"{path}.type")
    match part:
        case InputText() | OutputText():
            return TextContent(part.text)
        case InputImage():
            return ImageContent(part.image_url, part.detail)
        case OutputAudio():
            return SpeechContent((SpokenSegment(part.transcript, 0.0),))
        case InputAudio():
            return _clip(part, wire, path)


def _clip(part: InputAudio, wire: WireFormat, path: str) -> AudioContent:
    if part.audio is None and part.transcript is None:
        raise InvalidRequest(f"{path}.audio: Field required", param=f"{path}.audio")
    if part.audio is None:
        return AudioContent(None, 0, part.transcript)
    ear = InputDecoder(wire)
    heard = ear.hear(from_base64(part.audio, f"{path}.audio"))
    clip = to_clip(np.concatenate((heard, ear.rest())))
    return AudioContent(clip.uri, clip.ms, part.transcript)


def _check_arguments(arguments: str, path: str) -> None:
    try:
        json.loads(arguments)
    except (ValueError, RecursionError):
        raise InvalidRequest(f"{path}: is not valid JSON", param=path) from None
