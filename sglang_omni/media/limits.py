"""What is taken in, and how it is brought to the model's form. Plain data."""

import math
from dataclasses import dataclass
from typing import Literal

Kind = Literal["image", "video", "audio"]


@dataclass(frozen=True)
class MediaLimits:
    """Beyond these a medium is refused. `file_bytes` counts the file as sent, `pixels` one decoded
    picture or frame, `video_pixels` all frames of a video, `frames` and `video_seconds` a video
    before sampling. `decode_seconds` is the time one medium may take, `memory_bytes` the address
    space of the process that decodes it."""

    file_bytes: int = 64 << 20
    pixels: int = 100_000_000
    frames: int = 9_000
    # 1e9 take one core 0.6 to 1.4 s in H.264 and HEVC, and each MiB 0.1 s more.
    video_pixels: int = 8_000_000_000
    video_seconds: float = 600.0
    audio_seconds: float = 300.0
    audio_channels: int = 8
    decode_seconds: float = 20.0
    memory_bytes: int = 6 << 30


@dataclass(frozen=True)
class PixelBudget:
    """Sizes of a resized picture: sides in multiples of `factor`, area within the bounds."""

    factor: int
    least: int
    most: int


@dataclass(frozen=True)
class VideoRules:
    """How a video is sampled: at most `fps` frames a second and `frames` frames; each of n frames
    has at least `least` pixels, and at most `total / n * 2` (but 1.05 times `least` always) and
    `max_frame_pixels`."""

    fps: float
    frames: int
    factor: int
    least: int
    total: int
    max_frame_pixels: float = math.inf


@dataclass(frozen=True)
class MediaRules:
    """The form a model takes its media in. `sample_rate` is in Hz."""

    image: PixelBudget
    video: VideoRules
    sample_rate: int
