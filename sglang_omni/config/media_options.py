"""Options of media: limits of files, and the sizes that media are resized to."""

from typing import Annotated

from pydantic import Field
from pydantic.dataclasses import dataclass

from sglang_omni.config.option_types import OPTION_CONFIG, Count, Number, Seconds, Texts
from sglang_omni.media.limits import MediaLimits


@dataclass(frozen=True, config=OPTION_CONFIG)
class MediaOptions:
    """Limits of media; media beyond a limit are rejected."""

    processes: Count = 2
    """Number of decoder processes; each decodes one file at a time."""

    place: Texts = ()
    """Machines of the decoder processes, by turns (local: this one); unset: this one."""

    file_bytes: Count = MediaLimits.file_bytes
    """Maximum size of a file."""

    pixels: Count = MediaLimits.pixels
    """Maximum pixels of a decoded image or video frame."""

    video_frames: Count = MediaLimits.frames
    """Maximum frames of a video before sampling."""

    video_pixels: Count = MediaLimits.video_pixels
    """Maximum pixels of all frames of a video together before sampling."""

    video_seconds: Seconds = MediaLimits.video_seconds
    """Maximum length of a video, in seconds."""

    audio_seconds: Seconds = MediaLimits.audio_seconds
    """Maximum length of audio in a message, in seconds."""

    recording_seconds: Seconds = MediaLimits.recording_seconds
    """Maximum length of a recording to transcribe, in seconds."""

    fetch_seconds: Seconds = 10.0
    """Time limit for a download, in seconds."""

    decode_seconds: Annotated[Number, Field(ge=1)] = MediaLimits.decode_seconds
    """Time limit for decoding a file, in seconds."""

    memory_bytes: Count = MediaLimits.memory_bytes
    """Maximum memory of a decoder process."""

    # One key may use half of it.
    max_held_bytes: Count = 2 << 30
    """Maximum memory of decoded media and of features that wait for the thinker (503 beyond)."""

    image_min_pixels: Count | None = None
    """Size that smaller images are enlarged to; unset: the model's."""

    # A CPU needs a second for these pixels, and minutes for twelve times as many.
    image_max_pixels: Count | None = None
    """Size that larger images are reduced to; unset: the model's, on a CPU 1,048,576."""

    video_fps: Annotated[Number, Field(ge=0.1, le=60)] | None = None
    """Maximum number of frames per second to sample from a video; unset: the model's."""

    # Frames are smaller on a CPU as well.
    video_max_sampled: Count | None = None
    """Maximum number of frames to sample in all; unset: the model's on a GPU, 24 on a CPU."""
