"""What the encoder engines are told, asked and answer. Plain data; no torch, no sglang."""

from dataclasses import dataclass
from pathlib import Path

from sglang_omni.engines.runtime.shared_array import Layout, SharedArray


@dataclass(frozen=True)
class EncoderSettings:
    """How an encoder engine runs. `images` and `audio` say what it encodes; on a CPU one engine
    does both. `gpus` are the cards of its ranks, empty on a CPU. A forward pass takes at most
    `max_patches` patches of pictures, or `max_audio_seconds` of clips: a longer video takes
    several passes; one image, one pair of frames or one clip may exceed it, alone. `graphs`
    captures the vision blocks in CUDA graphs."""

    checkpoint: Path
    images: bool = True
    audio: bool = True
    device: str = "cpu"
    dtype: str = "float32"
    tp_size: int = 1
    gpus: tuple[int, ...] = ()
    max_patches: int = 32_768
    max_audio_seconds: float = 600.0
    graphs: bool = True
    threads: int | None = None

    @property
    def uses_sglang(self) -> bool:
        """Whether its layers are SGLang's, which a single rank on a CPU can do without."""
        return self.images and (self.device != "cpu" or self.tp_size > 1)


@dataclass(frozen=True)
class VisionEncodeRequest:
    """Encode uint8 frames [frames, height, width, 3] that lie in `pixels` into `rows`.

    One frame is an image, an even number of frames a video. The sides are multiples of the patch
    size times the merge size. The features are [tokens, hidden], unit norm, in the engine's dtype.
    """

    pixels: SharedArray
    layout: Layout
    rows: SharedArray


@dataclass(frozen=True)
class AudioEncodeRequest:
    """Encode float32 samples [samples] at 16 kHz, mono, that lie in `samples`, into `rows`."""

    samples: SharedArray
    layout: Layout
    rows: SharedArray


@dataclass(frozen=True)
class Encoded:
    """Features lie in the request's `rows`, in this layout: float32, or uint16 for bfloat16."""

    layout: Layout
    last: bool = True


@dataclass(frozen=True)
class EncoderInfo:
    """What a loaded encoder engine reports. `hidden` is the width of a feature row."""

    hidden: int
    dtype: str
