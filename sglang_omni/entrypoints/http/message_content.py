"""Messages of a body as the pipeline takes them, each medium bound to the message that has it."""

from collections.abc import Callable, Iterator

from sglang_omni.pipeline import request as pipeline
from sglang_omni.pipeline.request import MediaPart, Message
from sglang_omni.protocol.chat import ChatBody, ChatMessage, PastAudio
from sglang_omni.protocol.errors import InvalidRequest
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
from sglang_omni.protocol.tools import ToolCall, ToolResult

# What OpenAI's low detail comes to: a picture of 512 x 512.
LOW_DETAIL_PIXELS = 512 * 512

Content = pipeline.TextPart | MediaPart
RecallTranscript = Callable[[str], str | None]


def to_messages(body: ChatBody, recall: RecallTranscript) -> tuple[Message, ...]:
    """The conversation. The body's own lists of media go to its last message: images and videos
    before the text, clips after it, for the model was trained to hear after it has read.

    `recall` tells what was said in the audio of an earlier answer. Raises `InvalidRequest` for a
    user message that says and shows nothing, and for an answer or a call that nobody remembers.
    """
    messages = [
        to_message(message, f"messages.{index}", recall)
        for index, message in enumerate(body.messages)
    ]
    _check_tool_results(body)
    before = (*_images(body), *_videos(body))
    messages[-1] = Message(messages[-1].role, (*before, *messages[-1].content, *_audio_clips(body)))
    for index, turn in enumerate(messages):
        if turn.role == "user" and not any(map(_has_content, turn.content)):
            path = f"messages.{index}.content"
            raise InvalidRequest(f"{path}: must not be blank", param=path)
    return tuple(messages)


def to_message(message: ChatMessage, path: str, recall: RecallTranscript) -> Message:
    """A turn; `developer` is OpenAI's newer name for `system`. `path` is its place in the body."""
    if message.role == "tool":
        texts = (part.text for part in message.content if isinstance(part, TextContentPart))
        return Message("tool", (ToolResult("".join(texts)),))
    role = "system" if message.role == "developer" else message.role
    parts = [_part(part, f"{path}.content.{index}") for index, part in enumerate(message.content)]
    if message.audio is not None and not parts:
        parts.append(pipeline.TextPart(_find_transcript(message.audio, path, recall)))
    called = [call.function for call in message.tool_calls or ()]
    return Message(role, (*parts, *(ToolCall(call.name, call.arguments) for call in called)))


def _find_transcript(audio: PastAudio, path: str, recall: RecallTranscript) -> str:
    """What was said in an earlier answer. Raises `InvalidRequest` where nobody knows any more."""
    said = audio.transcript or recall(audio.id)
    if said is None:
        path = f"{path}.audio.id"
        reason = "is not known, or no longer; send its transcript along"
        raise InvalidRequest(f"{path}: {audio.id[:64]!r} {reason}", param=path)
    return said


def _check_tool_results(body: ChatBody) -> None:
    """Refuse a result of a call that was not made before it. Raises `InvalidRequest`."""
    called: set[str] = set()
    for index, message in enumerate(body.messages):
        called |= {call.id for call in message.tool_calls or ()}
        if message.tool_call_id is not None and message.tool_call_id not in called:
            path = f"messages.{index}.tool_call_id"
            raise InvalidRequest(f"{path}: no message before it has this call", param=path)


def _part(part: Part, path: str) -> Content:
    match part:
        case TextContentPart():
            return pipeline.TextPart(part.text)
        case ImagePart():
            return _image(part.image_url, f"{path}.image_url.url")
        case InputAudioPart():
            source = f"data:audio/{part.input_audio.format};base64,{part.input_audio.data}"
            return MediaPart("audio", (source,), f"{path}.input_audio.data")
        case AudioPart():
            return _audio_clip(part.audio_url, f"{path}.audio_url.url")
        case VideoPart():
            return _video(part.video_url, f"{path}.video_url")


def _images(body: ChatBody) -> Iterator[MediaPart]:
    for index, image in enumerate(body.images):
        yield _image(image, f"images.{index}")


def _videos(body: ChatBody) -> Iterator[MediaPart]:
    for index, video in enumerate(body.videos):
        yield _video(video, f"videos.{index}")


def _audio_clips(body: ChatBody) -> Iterator[MediaPart]:
    for index, clip in enumerate(body.audios):
        yield _audio_clip(clip, f"audios.{index}")


def _image(image: ImageUrl, field: str) -> MediaPart:
    max_pixels = LOW_DETAIL_PIXELS if image.detail == "low" else None
    return MediaPart("image", (image.url,), field, max_pixels)


def _audio_clip(clip: AudioUrl, field: str) -> MediaPart:
    return MediaPart("audio", (clip.url,), field)


def _video(video: VideoUrl, field: str) -> MediaPart:
    sources = (video.url,) if video.url is not None else tuple(video.frames or ())
    return MediaPart("video", sources, field)


def _has_content(part: object) -> bool:
    return not isinstance(part, pipeline.TextPart) or bool(part.text.strip())
