"""Items of a conversation: frozen, replaced as a whole when something about them changes."""

import secrets
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any, Literal

from sglang_omni.entrypoints.realtime.audio_codec import clip_samples, to_base64

Status = Literal["in_progress", "completed", "incomplete"]
ItemRole = Literal["system", "user", "assistant"]
JSON = dict[str, Any]
# From here on come the radicals, kana and ideographs.
_FIRST_IDEOGRAPH = "\u2e80"


def new_id(kind: str) -> str:
    """A name that no other thing of this kind has: `item_...`, `resp_...`."""
    return f"{kind}_{secrets.token_hex(12)}"


@dataclass(frozen=True)
class TextContent:
    """Written text, of either side."""

    text: str


@dataclass(frozen=True)
class ImageContent:
    """A picture that the user showed; `url` is None once the byte budget let it go."""

    url: str | None
    detail: Literal["auto", "low", "high"] = "auto"


@dataclass(frozen=True)
class AudioContent:
    """What the user said: a data URI, or None where there is none or it was let go. `ms` long.

    `transcript` is None until the speech was transcribed.
    """

    uri: str | None
    ms: int
    transcript: str | None = None


@dataclass(frozen=True)
class SpokenSegment:
    """Words whose sound begins `start_ms` after the beginning of an answer."""

    text: str
    start_ms: float


@dataclass(frozen=True)
class SpeechContent:
    """A spoken answer: its words, how much of its sound was sent, and how much of it was heard
    before somebody spoke over it (None: all of it, as far as is known)."""

    segments: tuple[SpokenSegment, ...] = ()
    duration_ms: float = 0.0
    heard_ms: float | None = None

    @property
    def transcript(self) -> str:
        """The words that were heard."""
        if self.heard_ms is None:
            return "".join(segment.text for segment in self.segments)
        return heard_words(self.segments, self.duration_ms, self.heard_ms)


Content = TextContent | ImageContent | AudioContent | SpeechContent


@dataclass(frozen=True)
class MessageItem:
    """What somebody said, wrote or showed."""

    id: str
    role: ItemRole
    content: tuple[Content, ...]
    status: Status = "completed"


@dataclass(frozen=True)
class CallItem:
    """The model calls a function. `arguments` is JSON as the model wrote it."""

    id: str
    call_id: str
    name: str
    arguments: str
    status: Status = "completed"


@dataclass(frozen=True)
class CallOutputItem:
    """What a function returned to the model."""

    id: str
    call_id: str
    output: str
    status: Status = "completed"


Item = MessageItem | CallItem | CallOutputItem


def heard_words(segments: Sequence[SpokenSegment], duration_ms: float, heard_ms: float) -> str:
    """The words of a speech of `duration_ms` that were out after `heard_ms`.

    Speech is synthesised by segments, whose beginnings are known to the sample; inside the one
    that was cut, words are taken to be spoken at an even pace, and one is heard when it is over.
    """
    ends = [segment.start_ms for segment in segments[1:]] + [duration_ms]
    heard = ""
    for segment, end in zip(segments, ends, strict=False):
        if segment.start_ms >= heard_ms:
            break
        if end <= heard_ms:
            heard += segment.text
        else:
            share = (heard_ms - segment.start_ms) / (end - segment.start_ms)
            return heard + _whole_words(segment.text, share)
    return heard


def _whole_words(text: str, share: float) -> str:
    """The first `share` of a text, cut back to the end of a word; Chinese is cut anywhere."""
    cut = int(len(text) * share)
    while 0 < cut < len(text) and _in_word(text[cut - 1]) and _in_word(text[cut]):
        cut -= 1
    return text[:cut].rstrip()


def _in_word(char: str) -> bool:
    """Whether a character is a letter of a script that separates its words."""
    return char.isalnum() and char < _FIRST_IDEOGRAPH


def weight(item: Item) -> int:
    """Bytes that an item holds, roughly: one per character."""
    match item:
        case MessageItem():
            return sum(map(_part_weight, item.content))
        case CallItem():
            return len(item.name) + len(item.arguments)
        case CallOutputItem():
            return len(item.output)


def _part_weight(part: Content) -> int:
    match part:
        case TextContent(text):
            return len(text)
        case ImageContent(url):
            return len(url or "")
        case AudioContent(uri, _, transcript):
            return len(uri or "") + len(transcript or "")
        case SpeechContent(segments):
            return sum(len(segment.text) for segment in segments)


def without_media(item: Item) -> Item:
    """The item with its sound and pictures let go; transcripts stay."""
    if not isinstance(item, MessageItem):
        return item
    return replace(item, content=tuple(map(_let_go, item.content)))


def _let_go(part: Content) -> Content:
    match part:
        case AudioContent():
            return replace(part, uri=None)
        case ImageContent():
            return replace(part, url=None)
        case _:
            return part


def item_json(item: Item, with_audio: bool = False) -> JSON:
    """The wire form. Sound is sent only `with_audio`, as 16-bit samples at 16 kHz."""
    head = {"id": item.id, "object": "realtime.item", "status": item.status}
    match item:
        case MessageItem():
            content = [_part_json(part, item.role, with_audio) for part in item.content]
            return {**head, "type": "message", "role": item.role, "content": content}
        case CallItem():
            call = {"call_id": item.call_id, "name": item.name, "arguments": item.arguments}
            return {**head, "type": "function_call", **call}
        case CallOutputItem():
            output = {"call_id": item.call_id, "output": item.output}
            return {**head, "type": "function_call_output", **output}


def _part_json(part: Content, role: ItemRole, with_audio: bool) -> JSON:
    match part:
        case TextContent(text):
            kind = "output_text" if role == "assistant" else "input_text"
            return {"type": kind, "text": text}
        case ImageContent(url, detail):
            return {"type": "input_image", "image_url": url, "detail": detail}
        case AudioContent(uri, _, transcript):
            sound = {"audio": _clip_base64(uri)} if with_audio and uri else {}
            return {"type": "input_audio", "transcript": transcript, **sound}
        case SpeechContent():
            return {"type": "output_audio", "transcript": part.transcript}


def _clip_base64(uri: str) -> str:
    return to_base64(clip_samples(uri).tobytes())
