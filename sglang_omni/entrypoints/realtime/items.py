"""Defines the items of a conversation. They are frozen; a change replaces the whole item."""

import secrets
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any, Literal

from sglang_omni.entrypoints.realtime.audio_codec import decode_wav, encode_base64

Status = Literal["in_progress", "completed", "incomplete"]
ItemRole = Literal["system", "user", "assistant"]
JSON = dict[str, Any]
# The first character of the Unicode blocks of CJK radicals, kana and ideographs.
_FIRST_IDEOGRAPH = "\u2e80"


def make_id(prefix: str) -> str:
    """Return a unique id: `item_...`, `resp_...`."""
    return f"{prefix}_{secrets.token_hex(12)}"


@dataclass(frozen=True)
class TextContent:
    """Text of the user, the system or the assistant."""

    text: str


@dataclass(frozen=True)
class ImageContent:
    """An image of the user. `url` is None once the image was dropped."""

    url: str | None
    detail: Literal["auto", "low", "high"] = "auto"


@dataclass(frozen=True)
class AudioContent:
    """Audio of the user.

    Attributes:
        wav: A WAV file of 16-bit samples at 16 kHz; None without audio, or once dropped.
        duration_ms: Length of the audio.
        transcript: None until the audio was transcribed.
    """

    wav: bytes | None
    duration_ms: int
    transcript: str | None = None


@dataclass(frozen=True)
class SpokenSegment:
    """Words whose audio starts `start_ms` after the start of an answer."""

    text: str
    start_ms: float


@dataclass(frozen=True)
class SpeechContent:
    """A spoken answer.

    Attributes:
        segments: Its words.
        duration_ms: How much audio was sent.
        played_ms: How much was played before the user interrupted it; None if it was not
            interrupted.
    """

    segments: tuple[SpokenSegment, ...] = ()
    duration_ms: float = 0.0
    played_ms: float | None = None

    @property
    def transcript(self) -> str:
        """Return the words that were played."""
        if self.played_ms is None:
            return "".join(segment.text for segment in self.segments)
        return truncate_words(self.segments, self.duration_ms, self.played_ms)


Content = TextContent | ImageContent | AudioContent | SpeechContent


@dataclass(frozen=True)
class MessageItem:
    """A message of the user, the system or the assistant."""

    id: str
    role: ItemRole
    content: tuple[Content, ...]
    status: Status = "completed"


@dataclass(frozen=True)
class CallItem:
    """A function call of the model. `arguments` is JSON as the model wrote it."""

    id: str
    call_id: str
    name: str
    arguments: str
    status: Status = "completed"


@dataclass(frozen=True)
class CallOutputItem:
    """The result of a function call."""

    id: str
    call_id: str
    output: str
    status: Status = "completed"


Item = MessageItem | CallItem | CallOutputItem


def truncate_words(segments: Sequence[SpokenSegment], duration_ms: float, played_ms: float) -> str:
    """Return the words that were complete after `played_ms` of a speech of `duration_ms`.

    The start of each segment is exact. Inside the segment that was interrupted, the words are
    assumed to be spoken at a constant pace.
    """
    ends_ms = [segment.start_ms for segment in segments[1:]] + [duration_ms]
    words = ""
    for segment, end_ms in zip(segments, ends_ms, strict=False):
        if segment.start_ms >= played_ms:
            break
        if end_ms <= played_ms:
            words += segment.text
        else:
            fraction = (played_ms - segment.start_ms) / (end_ms - segment.start_ms)
            return words + _truncate_at_word(segment.text, fraction)
    return words


def _truncate_at_word(text: str, fraction: float) -> str:
    """Return the first `fraction` of a text, up to the end of a word; Chinese is cut anywhere."""
    end = int(len(text) * fraction)
    while 0 < end < len(text) and _is_word_char(text[end - 1]) and _is_word_char(text[end]):
        end -= 1
    return text[:end].rstrip()


def _is_word_char(char: str) -> bool:
    """Return whether a character is a letter of a script that separates words."""
    return char.isalnum() and char < _FIRST_IDEOGRAPH


def estimate_bytes(item: Item) -> int:
    """Estimate the bytes that an item holds: one per character."""
    match item:
        case MessageItem():
            return sum(map(_estimate_part_bytes, item.content))
        case CallItem():
            return len(item.name) + len(item.arguments)
        case CallOutputItem():
            return len(item.output)


def _estimate_part_bytes(part: Content) -> int:
    match part:
        case TextContent(text):
            return len(text)
        case ImageContent(url):
            return len(url or "")
        case AudioContent(wav, _, transcript):
            return len(wav or b"") + len(transcript or "")
        case SpeechContent(segments):
            return sum(len(segment.text) for segment in segments)


def drop_media(item: Item) -> Item:
    """Return the item without its audio and images; transcripts stay."""
    if not isinstance(item, MessageItem):
        return item
    return replace(item, content=tuple(map(_drop_part_media, item.content)))


def _drop_part_media(part: Content) -> Content:
    match part:
        case AudioContent():
            return replace(part, wav=None)
        case ImageContent():
            return replace(part, url=None)
        case _:
            return part


def item_to_json(item: Item, with_audio: bool = False) -> JSON:
    """Return the item in the form that events carry.

    Audio of the user is included only `with_audio`, as 16-bit samples at 16 kHz.
    """
    common = {"id": item.id, "object": "realtime.item", "status": item.status}
    match item:
        case MessageItem():
            content = [_part_to_json(part, item.role, with_audio) for part in item.content]
            return {**common, "type": "message", "role": item.role, "content": content}
        case CallItem():
            call = {"call_id": item.call_id, "name": item.name, "arguments": item.arguments}
            return {**common, "type": "function_call", **call}
        case CallOutputItem():
            output = {"call_id": item.call_id, "output": item.output}
            return {**common, "type": "function_call_output", **output}


def _part_to_json(part: Content, role: ItemRole, with_audio: bool) -> JSON:
    match part:
        case TextContent(text):
            part_type = "output_text" if role == "assistant" else "input_text"
            return {"type": part_type, "text": text}
        case ImageContent(url, detail):
            return {"type": "input_image", "image_url": url, "detail": detail}
        case AudioContent(wav, _, transcript):
            audio = {"audio": _audio_to_base64(wav)} if with_audio and wav else {}
            return {"type": "input_audio", "transcript": transcript, **audio}
        case SpeechContent():
            return {"type": "output_audio", "transcript": part.transcript}


def _audio_to_base64(wav: bytes) -> str:
    return encode_base64(decode_wav(wav).tobytes())
