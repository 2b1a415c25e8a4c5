"""Settings, requests and outputs of the encoder engines. Plain data; no torch, no sglang."""

from dataclasses import dataclass
from pathlib import Path

from sglang_omni.engines.runtime.shared_array import Layout, SharedArray


@dataclass(frozen=True)
class EncoderSettings:
    """Settings of an encoder engine.

    Attributes:
        images: Encode images and videos.
        audio: Encode audio. On a CPU one engine encodes both.
        gpus: The GPU indices of the ranks; empty on a CPU.
        max_patches: The maximum number of patches in a forward pass. A longer video takes several
            passes. A single image or pair of frames may exceed it, alone.
        max_audio_seconds: The maximum audio in a forward pass. A single clip may exceed it, alone.
        graphs: Capture the vision blocks in CUDA graphs.
        threads: CPU threads of PyTorch; None keeps its default.
    """

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
        """Return whether the layers are SGLang's. A single rank on a CPU does not need them."""
        return self.images and (self.device != "cpu" or self.tp_size > 1)


@dataclass(frozen=True)
class VisionEncodeRequest:
    """Encode the uint8 frames [frames, height, width, 3] in `pixels` into `rows`.

    One frame is an image; an even number of frames is a video. Height and width are multiples of
    the patch size times the merge size. The features are [tokens, hidden], of unit norm, in the
    engine's dtype.
    """

    pixels: SharedArray
    layout: Layout
    rows: SharedArray


@dataclass(frozen=True)
class AudioEncodeRequest:
    """Encode the mono float32 samples [samples] at 16 kHz in `samples` into `rows`."""

    samples: SharedArray
    layout: Layout
    rows: SharedArray


@dataclass(frozen=True)
class Encoded:
    """The features are in the request's `rows`, in this layout: float32, or uint16 for bfloat16."""

    layout: Layout
    last: bool = True


@dataclass(frozen=True)
class EncoderInfo:
    """What a loaded encoder engine reports. `hidden` is the size of a feature row."""

    hidden: int
    dtype: str
