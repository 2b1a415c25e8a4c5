"""Settings, requests and outputs of a media decoder process. Plain data; no decoder library."""

from dataclasses import dataclass

import numpy as np

from sglang_omni.engines.runtime.shared_array import Layout, SharedArray
from sglang_omni.engines.runtime.shared_descriptor import SharedDescriptor
from sglang_omni.media.limits import (
    NO_VIDEO_OPTIONS,
    Kind,
    MediaLimits,
    MediaRules,
    PixelBudget,
    VideoOptions,
)
from sglang_omni.media.speech_spans import CutRules


@dataclass(frozen=True)
class MediaDecoderSettings:
    """The limits and rules for decoding every file."""

    limits: MediaLimits
    rules: MediaRules


@dataclass(frozen=True)
class SharedFile:
    """A file in shared memory. Sending a large file would block the event loop."""

    array: SharedArray
    layout: Layout

    @classmethod
    def of(cls, content: bytes) -> "SharedFile":
        """Copy a file to shared memory. It takes time but releases the GIL."""
        array = SharedArray()
        return cls(array, array.write(np.frombuffer(content, np.uint8)))

    def read(self) -> bytes:
        """Return the content.

        Raises:
            OSError: The owner of the memory is gone.
        """
        return self.array.read(self.layout).tobytes()


@dataclass(frozen=True)
class DecodeRequest:
    """Decode `files` into `array`.

    An image becomes uint8 [1, height, width, 3], resized. A video becomes uint8
    [frames, height, width, 3], sampled and resized, with an even number of frames. Audio becomes
    mono float32 [samples] in [-1, 1].

    Attributes:
        kind: The kind of the medium.
        files: One file; several files of kind `video` are its frames.
        array: The destination.
        image: The size limit of this image, in place of the rules.
        sample_rate: The output sample rate in Hz of this clip, in place of the rules.
        max_seconds: The maximum length of this clip, in place of the limits.
        video: What the request asks of a video. Audio with a `sound` is that of a video file; a
            video without sound has no samples.
    """

    kind: Kind
    files: tuple[bytes | SharedFile, ...]
    array: SharedArray
    image: PixelBudget | None = None
    sample_rate: int | None = None
    max_seconds: float | None = None
    video: VideoOptions = NO_VIDEO_OPTIONS

    def content(self) -> list[bytes]:
        """Return the contents of the files.

        Raises:
            OSError: The owner of a shared file is gone.
        """
        return [file if isinstance(file, bytes) else file.read() for file in self.files]


@dataclass(frozen=True)
class Decoded:
    """The result in the request's array.

    `seconds` are the times of a video's frame pairs, one for each pair; empty for other kinds.
    """

    layout: Layout
    seconds: tuple[float, ...] = ()
    last: bool = True


@dataclass(frozen=True)
class RecordingRequest:
    """Read a recording of any length, and find where somebody speaks.

    Attributes:
        source: The file.
        sink: An empty file for its samples: int16, mono, 16 kHz.
        rules: How to cut it.
    """

    source: SharedDescriptor
    sink: SharedDescriptor
    rules: CutRules
