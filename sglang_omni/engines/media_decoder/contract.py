"""What a decoding process is told, asked and answers. Plain data; no decoder library."""

from dataclasses import dataclass

import numpy as np

from sglang_omni.engines.runtime.shared_array import Layout, SharedArray
from sglang_omni.media.limits import Kind, MediaLimits, MediaRules, PixelBudget


@dataclass(frozen=True)
class MediaDecoderSettings:
    """How every file is decoded."""

    limits: MediaLimits
    rules: MediaRules


@dataclass(frozen=True)
class SharedFile:
    """A file in memory that both processes see: to send it would hold up the event loop."""

    array: SharedArray
    layout: Layout

    @classmethod
    def of(cls, content: bytes) -> "SharedFile":
        """Return a file of this content. Takes time, but not the interpreter's lock."""
        array = SharedArray()
        return cls(array, array.write(np.frombuffer(content, np.uint8)))

    def read(self) -> bytes:
        """Return the content. Raises `OSError` when the maker is gone."""
        return self.array.read(self.layout).tobytes()


@dataclass(frozen=True)
class DecodeRequest:
    """Decode `files` into `array`.

    One file is an image, a video or an audio clip, as `kind` says; several files, of kind
    `video`, are its frames. `image` bounds this image's size, and `sample_rate` (Hz) and
    `most_seconds` this clip's rate and length, instead of the rules and limits.

    An image becomes uint8 [1, height, width, 3], resized. A video becomes uint8
    [frames, height, width, 3], sampled and resized, an even number of frames. A clip becomes
    float32 [samples], mono, in [-1, 1].
    """

    kind: Kind
    files: tuple[bytes | SharedFile, ...]
    array: SharedArray
    image: PixelBudget | None = None
    sample_rate: int | None = None
    most_seconds: float | None = None

    def content(self) -> list[bytes]:
        """Return the files. Raises `OSError` when whoever asked is gone."""
        return [file if isinstance(file, bytes) else file.read() for file in self.files]


@dataclass(frozen=True)
class Decoded:
    """What lies in the request's array. `seconds` are the times of a video's frame pairs, one for
    each pair, empty for other kinds."""

    layout: Layout
    seconds: tuple[float, ...] = ()
    last: bool = True
