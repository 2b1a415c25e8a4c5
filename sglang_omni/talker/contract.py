"""What the talker engine is told, asked and answers. Plain data; no torch."""

from dataclasses import dataclass
from pathlib import Path
from typing import Literal

import numpy as np

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
class TalkerRequest:
    """One fragment of normalised text to speak.

    Noise is a function of (`seed`, `segment`, patch, index), so the same request sounds the
    same alone or in a batch. `max_patches` None applies the duration guard of the text.
    """

    text: str
    voice: str
    seed: int
    segment: int = 0
    max_patches: int | None = None


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
    """What a loaded talker engine reports about itself."""

    sample_rate: int
    voices: tuple[str, ...]
    slots: int
