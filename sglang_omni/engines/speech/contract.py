"""Settings, requests and outputs of the talker engine. Plain data; no torch."""

from dataclasses import dataclass, field
from pathlib import Path
from typing import Literal

import numpy as np

from sglang_omni.engines.runtime.shared_array import Layout, SharedArray
from sglang_omni.models.speech_text import SpeechStyle

AdmissionPolicy = Literal["real_time", "queue"]


@dataclass(frozen=True)
class TalkerSettings:
    """Settings of a talker engine.

    Attributes:
        checkpoint: The model folder, which contains `talker/`.
        slots: The maximum number of requests in a step.
        min_patches: The reference's MIN: the stop rule applies only to later patches.
        max_patches: The maximum number of patches of a request.
        context: The KV cache length of the backbone per slot, prompt included.
        threads: CPU threads of PyTorch; None keeps its default.
        graphs: Capture the steps in CUDA graphs.
        fp8: Use FP8 for large matrix products in captured steps.
        admission: Reject a request that would stall playing streams, or let it wait.
    """

    checkpoint: Path
    device: str = "cpu"
    dtype: str = "float32"
    slots: int = 8
    min_patches: int = 3
    max_patches: int = 1000
    context: int = 2048
    threads: int | None = None
    graphs: bool = True
    fp8: bool = False
    admission: AdmissionPolicy = "real_time"


@dataclass(frozen=True)
class ClonedVoice:
    """A voice that a `VoiceRequest` encoded from a recording.

    Attributes:
        key: The identity of the voice: equal keys are equal voices.
        text: The transcript of the recording, None if unknown.
        array: Float32 values: the latents, then the speaker vector, if there is one.
        layout: The layout of `array`.
        latents: The number of latents.
    """

    key: str
    text: str | None
    array: SharedArray
    layout: Layout
    latents: int


@dataclass(frozen=True)
class TalkerRequest:
    """One fragment of normalized text to speak.

    `voice` is a preset, a cloned voice, or None for sounds without a speaker. Noise is a function
    of (`seed`, `segment`, patch, index), so a request sounds the same alone and in a batch. With
    `max_patches` None, the limit is estimated from the text.
    """

    text: str
    voice: str | ClonedVoice | None
    seed: int
    segment: int = 0
    max_patches: int | None = None
    style: SpeechStyle = field(default_factory=SpeechStyle)


@dataclass(frozen=True)
class VoiceRequest:
    """Encode a voice from a recording: mono float32 samples in [-1, 1] at `sample_rate` Hz.

    The result is written to `voice`, in the format that `ClonedVoice` describes. `key` is the seed
    of the sample from the VAE's posterior.
    """

    key: str
    recording: SharedArray
    layout: Layout
    sample_rate: int
    voice: SharedArray


@dataclass(frozen=True)
class EncodedVoice:
    """The content of the request's array `voice`.

    `latents` is the number of latents, `speaker` the size of the speaker vector that follows, 0 if
    the checkpoint has no speaker encoder.
    """

    layout: Layout
    latents: int
    speaker: int
    last: bool = True


@dataclass(frozen=True)
class TalkerChunk:
    """Newly decoded samples: mono float32, shape [samples], possibly empty.

    `patches` counts the patches generated since the previous chunk. The chunk with `last` set
    ends the request.
    """

    pcm: np.ndarray
    patches: int
    last: bool


@dataclass(frozen=True)
class TalkerInfo:
    """What a loaded talker engine reports.

    A step makes `frame_s` seconds of audio at `sample_rate` Hz. `has_speaker_encoder` tells whether
    the checkpoint has the network that encodes a speaker's timbre. Without it, a voice consists of
    its prompt only.
    """

    sample_rate: int
    frame_s: float
    voices: tuple[str, ...]
    slots: int
    has_speaker_encoder: bool = True
