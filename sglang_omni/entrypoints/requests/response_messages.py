"""Conversion of the items of a conversation to the messages of a chat."""

import mimetypes
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from urllib.parse import urlsplit

from sglang_omni.entrypoints.requests.field_names import FieldNames
from sglang_omni.protocol.body import MAX_MESSAGES
from sglang_omni.protocol.chat import ChatMessage, PastImage
from sglang_omni.protocol.errors import InvalidRequest
from sglang_omni.protocol.functions import PastCall
from sglang_omni.protocol.media import (
    AudioPart,
    AudioUrl,
    ImagePart,
    ImageUrl,
    InputAudioPart,
    Part,
    TextContentPart,
    VideoPart,
    VideoUrl,
)
from sglang_omni.protocol.response_items import (
    TEXT_PARTS,
    InputFilePart,
    InputImagePart,
    InputPart,
    InputTextPart,
    Item,
    OutputTextPart,
    RefusalPart,
    ResponseFunctionCall,
    ResponseFunctionCallOutput,
    ResponseImageCall,
    ResponseMessage,
)

_SYSTEM_ROLES = ("system", "developer")
_DATA_SCHEME = "data:"
_MAX_MEDIA_TYPE_CHARACTERS = 256


@dataclass(frozen=True)
class ConversationEntry:
    """An item of the conversation, and the field that it comes from.

    An item that `is_earlier` belongs to an earlier response, so no path leads into it.
    """

    item: Item
    path: str
    is_earlier: bool = False


class ChatMessages:
    """The messages of a chat as they grow, and what their fields are called in the request."""

    def __init__(self, instructions: str | None, entries: Sequence[ConversationEntry]) -> None:
        """Convert the items of a conversation. Raises `InvalidRequest`, naming the field."""
        self.messages: list[ChatMessage] = []
        self._renamed: dict[str, str] = {}
        self._whole: dict[str, str] = {}
        self._add_system(instructions, entries)
        for entry in entries:
            self._add(entry)
        if not self.messages:
            raise InvalidRequest("input: there is no message to answer", param="input")
        if len(self.messages) > MAX_MESSAGES:
            message = f"input: the conversation has more than {MAX_MESSAGES} messages"
            raise InvalidRequest(message, param="input")

    @property
    def field_names(self) -> FieldNames:
        """Return the names of the messages' fields in the request."""
        return FieldNames(self._renamed, self._whole)

    def _add_system(self, instructions: str | None, entries: Sequence[ConversationEntry]) -> None:
        """Add one message with the instructions and all system messages.

        The prompts of models have one place for them, the first.
        """
        texts = [(instructions, "instructions")] if instructions else []
        texts += [
            (text, entry.path)
            for entry in entries
            if isinstance(entry.item, ResponseMessage) and entry.item.role in _SYSTEM_ROLES
            if (text := _join_text(entry.item.content))
        ]
        if texts:
            self._whole["messages.0"] = texts[0][1]
            content = _to_text_part("\n\n".join(text for text, _ in texts))
            self.messages.append(ChatMessage(role="system", content=[content]))

    def _add(self, entry: ConversationEntry) -> None:
        match entry.item:
            case ResponseMessage(role="user", content=content):
                self._add_user(content, entry)
            case ResponseMessage(role="assistant", content=content) if content:
                parts: list[Part] = [_to_text_part(_get_text(part)) for part in content]
                self._append(ChatMessage(role="assistant", content=parts), entry)
            case ResponseFunctionCall():
                self._add_call(entry.item, entry)
            case ResponseImageCall(result=str()):
                self._add_image(entry.item, entry)
            case ResponseFunctionCallOutput(call_id=call_id, output=output):
                result: list[Part] = [_to_text_part(part.text) for part in output]
                message = ChatMessage(role="tool", tool_call_id=call_id, content=result)
                path = self._append(message, entry)
                self._rename(f"{path}.content", entry, ".output")
                self._rename(f"{path}.tool_call_id", entry, ".call_id")

    def _append(self, message: ChatMessage, entry: ConversationEntry) -> str:
        """Add a message, and return its path in the chat."""
        path = f"messages.{len(self.messages)}"
        self._rename(path, entry)
        self.messages.append(message)
        return path

    def _rename(self, chat_path: str, entry: ConversationEntry, rest: str = "") -> None:
        if entry.is_earlier:
            self._whole[chat_path] = entry.path
        else:
            self._renamed[chat_path] = entry.path + rest

    def _add_user(self, content: Sequence[InputPart], entry: ConversationEntry) -> None:
        parts = [
            _to_part(part, f"{entry.path}.content.{index}") for index, part in enumerate(content)
        ]
        path = self._append(ChatMessage(role="user", content=parts), entry)
        for index, part in enumerate(content):
            for chat_name, name in _get_source_names(part).items():
                chat_path = f"{path}.content.{index}.{chat_name}"
                self._rename(chat_path, entry, f".content.{index}.{name}")

    def _add_image(self, item: ResponseImageCall, entry: ConversationEntry) -> None:
        """Add a drawn image to the assistant's message before it, as one answer has both."""
        url = _to_data_uri(item.result or "", f"image/{item.output_format}")
        image = PastImage(type="image_url", image_url=ImageUrl(url=url))
        last = self.messages[-1] if self.messages else None
        if last is None or last.role != "assistant":
            path, images = self._append(ChatMessage(role="assistant", images=[image]), entry), []
        else:
            images = last.images
            self.messages[-1] = last.model_copy(update={"images": [*images, image]})
            path = f"messages.{len(self.messages) - 1}"
        self._rename(f"{path}.images.{len(images)}.image_url.url", entry, ".result")

    def _add_call(self, item: ResponseFunctionCall, entry: ConversationEntry) -> None:
        """Add a call to the assistant's message before it, as one answer has both."""
        call = PastCall(id=item.call_id, function=item)
        last = self.messages[-1] if self.messages else None
        if last is None or last.role != "assistant":
            path = self._append(ChatMessage(role="assistant", tool_calls=[call]), entry)
            self._rename(f"{path}.tool_calls.0.function", entry)
            return
        calls = [*(last.tool_calls or ()), call]
        self.messages[-1] = last.model_copy(update={"tool_calls": calls})
        path = f"messages.{len(self.messages) - 1}.tool_calls.{len(calls) - 1}"
        self._rename(f"{path}.function", entry)


def _get_source_names(part: InputPart) -> dict[str, str]:
    """Return the name of the field with a part's medium, by the names that it has in a chat."""
    match part:
        case InputImagePart():
            return {"image_url.url": "image_url"}
        case InputFilePart(file_data=data):
            name = "file_url" if data is None else "file_data"
            return dict.fromkeys(("image_url.url", "audio_url.url", "video_url"), name)
    return {}


def _get_text(part: InputPart) -> str:
    assert isinstance(part, TEXT_PARTS)
    return part.refusal if isinstance(part, RefusalPart) else part.text


def _join_text(content: Iterable[InputPart]) -> str:
    return "".join(map(_get_text, content))


def _to_text_part(text: str) -> TextContentPart:
    return TextContentPart(type="text", text=text)


def _to_part(part: InputPart, path: str) -> Part:
    match part:
        case InputTextPart() | OutputTextPart() | RefusalPart():
            return _to_text_part(_get_text(part))
        case InputImagePart(image_url=url, detail=detail):
            return ImagePart(type="image_url", image_url=ImageUrl(url=url, detail=detail))
        case InputAudioPart():
            return part
        case InputFilePart():
            return _to_media_part(part, path)


def _to_media_part(part: InputFilePart, path: str) -> Part:
    """Return a file as the medium that it is. Raises `InvalidRequest` for another kind."""
    media_type = _guess_media_type(part)
    url = part.file_url or _to_data_uri(part.file_data or "", media_type)
    match media_type.partition("/")[0]:
        case "image":
            return ImagePart(type="image_url", image_url=ImageUrl(url=url))
        case "audio":
            return AudioPart(type="audio_url", audio_url=AudioUrl(url=url))
        case "video":
            return VideoPart(type="video_url", video_url=VideoUrl(url=url))
    raise InvalidRequest(
        f"{path}: a file must be an image, audio or a video, as its data URI's media type or "
        "its name says",
        param=path,
    )


def _guess_media_type(part: InputFilePart) -> str:
    """Return the media type of a file, or an empty text."""
    source = part.file_data or part.file_url or ""
    if source.startswith(_DATA_SCHEME):
        head = source[len(_DATA_SCHEME) : _MAX_MEDIA_TYPE_CHARACTERS]
        return head.partition(",")[0].partition(";")[0].lower()
    name = part.filename or (_get_url_path(part.file_url) if part.file_url else "")
    return mimetypes.guess_type(name)[0] or ""


def _to_data_uri(data: str, media_type: str) -> str:
    return data if data.startswith(_DATA_SCHEME) else f"data:{media_type};base64,{data}"


def _get_url_path(url: str) -> str:
    try:
        return urlsplit(url).path
    except ValueError:
        return ""
