"""Limits of media, and the form that a model needs them in. Plain data."""

import math
from dataclasses import dataclass
from typing import Literal

Kind = Literal["image", "video", "audio"]
VideoSound = Literal["off", "optional", "required"]


@dataclass(frozen=True)
class MediaLimits:
    """The limits above which a medium is rejected.

    `file_bytes` limits the file as sent, `pixels` one decoded image or frame, `video_pixels` all
    frames of a video, `frames` and `video_seconds` a video before sampling. `audio_seconds` limits
    a clip that is decoded whole, `recording_seconds` one that is transcribed piece by piece.
    `decode_seconds` limits the time to decode one medium or a step of a recording, `memory_bytes`
    the address space of the decoder process.
    """

    file_bytes: int = 64 << 20
    pixels: int = 100_000_000
    frames: int = 9_000
    # In H.264 and HEVC, 1e9 pixels take one core 0.6 to 1.4 s, plus 0.1 s per MiB.
    video_pixels: int = 8_000_000_000
    video_seconds: float = 600.0
    audio_seconds: float = 300.0
    # Two hours, as clients count them.
    recording_seconds: float = 7_260.0
    audio_channels: int = 8
    decode_seconds: float = 20.0
    memory_bytes: int = 6 << 30


@dataclass(frozen=True)
class PixelBudget:
    """The size of a resized image: sides are multiples of `factor`, the area is within bounds."""

    factor: int
    min_pixels: int
    max_pixels: int


@dataclass(frozen=True)
class VideoRules:
    """How a video is sampled: at most `fps` frames per second and `frames` frames.

    A request may ask for another rate of up to `max_fps`, and for fewer frames.

    Each of n frames has at least `min_pixels` pixels, and at most `total_pixels / n * 2` and
    `max_frame_pixels`. The first of these upper bounds is never below 1.05 times `min_pixels`.
    """

    fps: float
    frames: int
    factor: int
    min_pixels: int
    total_pixels: int
    max_frame_pixels: float = math.inf
    max_fps: float = math.inf


@dataclass(frozen=True)
class VideoOptions:
    """What a request asks of a video file; None leaves it to the rules.

    Attributes:
        fps: Frames per second to sample. The rules still limit the number of frames. Of a list of
            frames, the rate that they were taken at.
        max_frames: Maximum number of frames to sample, if the rules do not allow fewer.
        sound: Whether its sound is heard too. If it is optional, a sound that cannot be decoded is
            left out.
    """

    fps: float | None = None
    max_frames: int | None = None
    sound: VideoSound = "off"


NO_VIDEO_OPTIONS = VideoOptions()


@dataclass(frozen=True)
class MediaRules:
    """The form that a model needs its media in. `sample_rate` is in Hz."""

    image: PixelBudget
    video: VideoRules
    sample_rate: int
