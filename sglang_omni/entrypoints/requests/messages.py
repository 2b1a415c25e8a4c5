"""Conversion of a body's messages and media to messages of the pipeline."""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace

from sglang_omni.media.limits import NO_VIDEO_OPTIONS, VideoOptions
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

# OpenAI's low detail: an image of 512 x 512 pixels.
LOW_DETAIL_PIXELS = 512 * 512

Content = pipeline.TextPart | MediaPart
RecallTranscript = Callable[[str], str | None]


def to_messages(
    body: ChatBody,
    recall: RecallTranscript,
    attached: Sequence[MediaPart] = (),
    video: VideoOptions = NO_VIDEO_OPTIONS,
) -> tuple[Message, ...]:
    """Return the messages of a conversation.

    The body's own lists of media belong to the last message: images and videos before its text,
    audio after it, as the model was trained.

    Args:
        body: The body of the request.
        recall: Returns the transcript of an earlier answer's audio by its id.
        attached: Media of the last message that are not in the body, which has text only.
        video: Options of video files that have none of their own.

    Raises:
        InvalidRequest: A user message is empty, or an audio id or a tool call id is unknown.
    """
    messages = [
        to_message(chat_message, f"messages.{index}", recall, video)
        for index, chat_message in enumerate(body.messages)
    ]
    _check_tool_results(body)
    before = (
        *_images(body),
        *_videos(body, video),
        *(part for part in attached if part.kind != "audio"),
    )
    after = (*_audio_clips(body), *(part for part in attached if part.kind == "audio"))
    messages[-1] = Message(messages[-1].role, (*before, *messages[-1].content, *after))
    for index, message in enumerate(messages):
        if message.role == "user" and not any(map(_has_content, message.content)):
            path = f"messages.{index}.content"
            raise InvalidRequest(f"{path}: must not be blank", param=path)
    return tuple(messages)


def to_message(
    message: ChatMessage, path: str, recall: RecallTranscript, video: VideoOptions
) -> Message:
    """Return one message, which is at `path` in the body.

    The role `developer` is OpenAI's newer name for `system`.
    """
    if message.role == "tool":
        texts = (part.text for part in message.content if isinstance(part, TextContentPart))
        return Message("tool", (ToolResult("".join(texts)),))
    role = "system" if message.role == "developer" else message.role
    parts = [
        _part(part, f"{path}.content.{index}", video) for index, part in enumerate(message.content)
    ]
    if message.audio is not None and not parts:
        parts.append(pipeline.TextPart(_find_transcript(message.audio, path, recall)))
    parts += [
        _image(image.image_url, f"{path}.images.{index}.image_url.url")
        for index, image in enumerate(message.images)
    ]
    calls = [call.function for call in message.tool_calls or ()]
    return Message(role, (*parts, *(ToolCall(call.name, call.arguments) for call in calls)))


def list_cited_audio(body: ChatBody) -> set[str]:
    """Return the ids of the earlier spoken answers whose transcripts the body does not have."""
    return {
        message.audio.id
        for message in body.messages
        if message.audio is not None and not message.content and not message.audio.transcript
    }


def _find_transcript(audio: PastAudio, path: str, recall: RecallTranscript) -> str:
    """Return the transcript of an earlier answer. Raises `InvalidRequest` if it is unknown."""
    transcript = audio.transcript or recall(audio.id)
    if transcript is None:
        path = f"{path}.audio.id"
        reason = "is unknown or has expired; send its transcript"
        raise InvalidRequest(f"{path}: {audio.id[:64]!r} {reason}", param=path)
    return transcript


def _check_tool_results(body: ChatBody) -> None:
    """Check that each tool result has an earlier call. Raises `InvalidRequest`."""
    call_ids: set[str] = set()
    for index, message in enumerate(body.messages):
        call_ids |= {call.id for call in message.tool_calls or ()}
        if message.tool_call_id is not None and message.tool_call_id not in call_ids:
            path = f"messages.{index}.tool_call_id"
            raise InvalidRequest(f"{path}: no earlier message has this tool call", param=path)


def _part(part: Part, path: str, video: VideoOptions) -> Content:
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
            return _video(part.video_url, f"{path}.video_url", video)


def _images(body: ChatBody) -> Iterator[MediaPart]:
    for index, image in enumerate(body.images):
        yield _image(image, f"images.{index}")


def _videos(body: ChatBody, options: VideoOptions) -> Iterator[MediaPart]:
    for index, video in enumerate(body.videos):
        yield _video(video, f"videos.{index}", options)


def _audio_clips(body: ChatBody) -> Iterator[MediaPart]:
    for index, clip in enumerate(body.audios):
        yield _audio_clip(clip, f"audios.{index}")


def _image(image: ImageUrl, field: str) -> MediaPart:
    max_pixels = LOW_DETAIL_PIXELS if image.detail == "low" else None
    return MediaPart("image", (image.url,), field, max_pixels)


def _audio_clip(clip: AudioUrl, field: str) -> MediaPart:
    return MediaPart("audio", (clip.url,), field)


def _video(video: VideoUrl, field: str, options: VideoOptions) -> MediaPart:
    if video.url is None:
        # Listed frames are all seen, and have no sound.
        listed = VideoOptions(fps=video.fps)
        return MediaPart("video", tuple(video.frames or ()), field, video=listed)
    fps = options.fps if video.fps is None else video.fps
    max_frames = options.max_frames if video.max_frames is None else video.max_frames
    own_options = replace(options, fps=fps, max_frames=max_frames)
    return MediaPart("video", (video.url,), field, video=own_options)


def _has_content(part: object) -> bool:
    return not isinstance(part, pipeline.TextPart) or bool(part.text.strip())
