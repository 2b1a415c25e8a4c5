"""The parts of a message: text, images, audio and videos."""

from typing import Annotated, Any, Literal

from pydantic import (
    BeforeValidator,
    Field,
    model_validator,
)
from pydantic_core import PydanticCustomError

from sglang_omni.protocol.body import (
    MAX_FRAMES,
    MAX_PARTS,
    Body,
    NonEmpty,
    Source,
    VideoFps,
    VideoMaxFrames,
)


def _to_parts(content: Any) -> Any:
    return [{"type": "text", "text": content}] if isinstance(content, str) else content


def _to_url(value: Any) -> Any:
    return {"url": value} if isinstance(value, str) else value


def _to_video(value: Any) -> Any:
    return {"frames": value} if isinstance(value, list) else _to_url(value)


class ImageUrl(Body):
    """The source of an image. With `low` detail it has at most as many pixels as 512 x 512."""

    url: Source
    detail: Literal["auto", "low", "high"] = "auto"


class AudioUrl(Body):
    """The source of an audio clip."""

    url: Source


class VideoUrl(Body):
    """The source of a video: one file, or its frames in order, two per second or `fps`.

    `fps` and `max_frames` of a file are in place of `video_fps` and `video_max_frames`.
    """

    url: Source | None = None
    frames: (
        Annotated[list[Source], Field(min_length=2, max_length=MAX_FRAMES, fail_fast=True)] | None
    ) = None
    fps: VideoFps | None = None
    max_frames: VideoMaxFrames | None = None

    @model_validator(mode="after")
    def _require_one_source(self) -> "VideoUrl":
        if (self.url is None) == (self.frames is None):
            raise PydanticCustomError("video_url", "requires either url or frames")
        if self.frames is not None and self.max_frames is not None:
            raise PydanticCustomError("video_url", "all frames are used; leave out max_frames")
        return self


class InlineAudio(Body):
    """An audio clip in base64. Its format is detected from the file."""

    data: NonEmpty
    format: Annotated[str, Field(min_length=1, max_length=64)]


ImageUrlField = Annotated[ImageUrl, BeforeValidator(_to_url, json_schema_input_type=str | ImageUrl)]
AudioUrlField = Annotated[AudioUrl, BeforeValidator(_to_url, json_schema_input_type=str | AudioUrl)]
VideoUrlField = Annotated[
    VideoUrl, BeforeValidator(_to_video, json_schema_input_type=str | list[str] | VideoUrl)
]


class TextContentPart(Body):
    """Text in a message."""

    type: Literal["text"]
    text: str


class ImagePart(Body):
    """An image in a message."""

    type: Literal["image_url"]
    image_url: ImageUrlField


class InputAudioPart(Body):
    """An audio clip in a message, in OpenAI's format."""

    type: Literal["input_audio"]
    input_audio: InlineAudio


class AudioPart(Body):
    """An audio clip in a message, by URL."""

    type: Literal["audio_url"]
    audio_url: AudioUrlField


class VideoPart(Body):
    """A video in a message."""

    type: Literal["video_url"]
    video_url: VideoUrlField


Part = Annotated[
    TextContentPart | ImagePart | InputAudioPart | AudioPart | VideoPart,
    Field(discriminator="type"),
]
Content = Annotated[
    list[Part],
    Field(max_length=MAX_PARTS, fail_fast=True),
    BeforeValidator(_to_parts, json_schema_input_type=str | list[Part]),
]
