"""What the talker engine is told, asked and answers. Plain data; no torch."""

from dataclasses import dataclass, field
from pathlib import Path
from typing import Literal

import numpy as np

from sglang_omni.engines.runtime.shared_array import Layout, SharedArray
from sglang_omni.models.speech_text import SpeechStyle

AdmissionPolicy = Literal["real_time", "queue"]


@dataclass(frozen=True)
class TalkerSettings:
    """How a talker engine runs.

    `checkpoint` is the model folder (it holds `talker/`). `slots` bounds the requests that are
    in a step at once. `min_patches` is the reference's MIN: the stop rule fires only when the
    step index exceeds it. `context` is the backbone's KV length per slot, prompt included.
    `graphs` has the steps of a CUDA device captured; `admission` says whether a request for which
    somebody's speech would stall is refused or waits. `fp8` has captured steps multiply in eight
    bits where they have many rows.
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
    """A voice that is not the checkpoint's: what `VoiceRequest` made of a recording.

    `array` holds float32 values: `latents` of the recording, one after the other, and then its
    speaker vector, if there is one. `key` stands for all of that: equal keys, equal voices. `text`
    is what the recording says, None where nobody knows.
    """

    key: str
    text: str | None
    array: SharedArray
    layout: Layout
    latents: int


@dataclass(frozen=True)
class TalkerRequest:
    """One fragment of normalised text to speak.

    `voice` is a preset, a cloned voice, or None where nobody is to speak. Noise is a function of
    (`seed`, `segment`, patch, index), so the same request sounds the same alone or in a batch.
    `max_patches` None applies the duration guard of the text.
    """

    text: str
    voice: str | ClonedVoice | None
    seed: int
    segment: int = 0
    max_patches: int | None = None
    manner: SpeechStyle = field(default_factory=SpeechStyle)


@dataclass(frozen=True)
class VoiceRequest:
    """Make a voice of a recording: mono float32 samples in [-1, 1] at `sample_rate` Hz.

    What was made is written to `voice`, in the form that `ClonedVoice` describes. `key` fixes
    which latents are drawn from the VAE's posterior.
    """

    key: str
    recording: SharedArray
    layout: Layout
    sample_rate: int
    voice: SharedArray


@dataclass(frozen=True)
class EncodedVoice:
    """What lies in the request's array: so many latents, and then so many numbers of the speaker
    vector, 0 where the checkpoint has no network for it."""

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
    """What a loaded talker engine reports about itself. A step makes `frame_s` seconds of audio at
    `sample_rate` Hz for each request. `has_speaker_encoder` says whether it has
    the network whose vector carries a speaker's timbre; without it a voice is its prompt alone."""

    sample_rate: int
    frame_s: float
    voices: tuple[str, ...]
    slots: int
    has_speaker_encoder: bool = True
