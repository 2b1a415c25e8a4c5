"""Options of media: limits of files, and the sizes that media are resized to."""

from dataclasses import dataclass
from typing import Annotated

from sglang_omni.config.option_types import Count, Range, Seconds
from sglang_omni.media.limits import MediaLimits


@dataclass(frozen=True)
class MediaOptions:
    """Limits of media. Media beyond a limit are rejected.

    Attributes:
        processes: Number of decoder processes; each decodes one file at a time.
        file_bytes: Maximum size of a file.
        pixels: Maximum pixels of a decoded image or video frame.
        video_frames: Maximum frames of a video before sampling.
        video_pixels: Maximum pixels of all frames of a video together before sampling.
        video_seconds: Maximum length of a video.
        audio_seconds: Maximum length of audio.
        fetch_seconds: Time limit for a download.
        decode_seconds: Time limit for decoding a file.
        memory_bytes: Maximum memory of a decoder process.
        max_held_bytes: Maximum memory of decoded media and of features that wait for the thinker;
            one key may use half of it (503 beyond).
        image_min_pixels: Size that smaller images are enlarged to. Unset: the model's.
        image_max_pixels: Size that larger images are reduced to. Unset: the model's, at most
            1,048,576 on a CPU, which needs a second for these and minutes for twelve times as many.
        video_fps: Maximum number of frames per second to sample from a video. Unset:
            the model's.
        video_max_sampled: Maximum number of frames to sample in all. Unset: the model's on a
            GPU, 48 on a CPU, where frames are smaller as well.
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
