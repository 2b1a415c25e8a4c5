"""Options of what is taken in: files, what they may cost, and the sizes they are brought to."""

from dataclasses import dataclass
from typing import Annotated

from sglang_omni.config.option_types import Count, Range, Seconds
from sglang_omni.media.limits import MediaLimits


@dataclass(frozen=True)
class MediaOptions:
    """What is taken in, and how. Each of `processes` decodes one file at a time.

    A medium is refused beyond `file_bytes` as sent, `pixels` of a decoded picture or frame,
    `video_frames`, `video_pixels` (of all its frames) and `video_seconds` before sampling,
    `audio_seconds`, `fetch_seconds` for its download, `decode_seconds` and `memory_bytes` of a
    decoding process. Pictures are resized to within `image_min_pixels` and `image_max_pixels`
    (unset: the model's; at most 1,048,576 on a CPU, which takes a second for them and minutes for
    twelve times as many). Of a video at most `video_fps` frames a second are seen (unset: the
    model's), and `video_max_sampled` in all (unset: the model's on a GPU, 48 on a CPU, where frames
    are smaller as well). What is decoded, or waits as features for the thinker, holds at most
    `max_held_bytes`, and half of that for one key (503 beyond).
    """

    processes: Count = 2
    file_bytes: Count = MediaLimits.file_bytes
    pixels: Count = MediaLimits.pixels
    video_frames: Count = MediaLimits.frames
    video_pixels: Count = MediaLimits.video_pixels
    video_seconds: Seconds = MediaLimits.video_seconds
    audio_seconds: Seconds = MediaLimits.audio_seconds
    fetch_seconds: Seconds = 10.0
    decode_seconds: Annotated[float, Range(1)] = MediaLimits.decode_seconds
    memory_bytes: Count = MediaLimits.memory_bytes
    max_held_bytes: Count = 2 << 30
    image_min_pixels: Count | None = None
    image_max_pixels: Count | None = None
    video_fps: Annotated[float, Range(0.1, 60)] | None = None
    video_max_sampled: Count | None = None
