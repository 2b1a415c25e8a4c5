"""What the speech engine needs of a streaming speech model: voices, prompts and batched steps.

A step makes one frame of `SpeechModelInfo.frame_s` seconds for every chosen slot. The engine owns
who is in which slot and when; the model's `SpeechExecutor` owns the state on the device.
"""

from collections.abc import Mapping, Sequence
from dataclasses import KW_ONLY, dataclass
from typing import TYPE_CHECKING, Any, Protocol

import numpy as np

from sglang_omni.models.speech_text import SpeechStyle

if TYPE_CHECKING:
    import torch

Voice = Any
"""A voice as its family has it; the engine only hands it on."""


@dataclass(frozen=True)
class SpeechModelInfo:
    """What a loaded speech model reports about itself.

    Attributes:
        sample_rate: Rate of its audio, in Hz.
        frame_s: Seconds of audio that one step makes for a request.
        voices: Names of the preset voices; the first is the default.
        has_speaker_encoder: Whether a cloned voice has a speaker vector beside its recording.
        stop_threshold: Stop probability above which a frame may be the last.
    """

    sample_rate: int
    frame_s: float
    voices: tuple[str, ...]
    has_speaker_encoder: bool
    stop_threshold: float = 0.5


@dataclass(frozen=True)
class ExecutorSettings:
    """How steps are executed.

    Attributes:
        slots: Requests that have state at once.
        context: Positions of each slot, prompt included.
        max_frames: Frames of the longest request.
        graphs: Whether to capture CUDA graphs where there is a GPU.
        fp8: Whether large batches multiply in FP8.
    """

    slots: int
    context: int
    max_frames: int
    graphs: bool = True
    fp8: bool = False


@dataclass(frozen=True)
class StepTimes:
    """The measured speed of an executor.

    Attributes:
        buckets: Pairs of a step's batch size and its duration in seconds, ascending by size. A step
            of a size between two buckets runs as the larger.
        prefill_s: The duration of a prefill.
        patch_s: The playing time of a patch.
    """

    buckets: tuple[tuple[int, float], ...]
    prefill_s: float = 0.0
    _: KW_ONLY
    patch_s: float

    @property
    def max_streams(self) -> int:
        """Return the maximum number of streams in a step."""
        return self.buckets[-1][0]

    def step_s(self, streams: int) -> float:
        """Return the duration of a step of `streams`, in seconds.

        Raises:
            ValueError: `streams` exceeds `max_streams`.
        """
        for size, seconds in self.buckets:
            if streams <= size:
                return seconds
        raise ValueError(f"a step takes {self.max_streams} streams at most, not {streams}")

    @property
    def best_bucket(self) -> tuple[int, float]:
        """Return the bucket with the highest throughput in patches per second."""
        return max(self.buckets, key=lambda bucket: bucket[0] / bucket[1])


class SpeechInput(Protocol):
    """What one request gives the model: its prompt, voice and sampling."""

    @property
    def num_tokens(self) -> int:
        """Return the positions that the prompt takes."""


@dataclass(frozen=True)
class Admission:
    """A request that starts in `slot`. Noise is a function of `seed`, `segment` and frame."""

    slot: int
    input: Any
    seed: int
    segment: int


class SpeechExecutor(Protocol):
    """Owns the device's state.

    Calls come in this order: prefill*, begin, read_stop_probabilities, finish, collect. Where
    `overlaps`, `collect` may wait until after the next `begin`, and the device is busy meanwhile. A
    slot may start another request once its last samples are collected.
    """

    overlaps: bool
    max_batch_size: int
    """Maximum number of slots in one step."""
    step_times: StepTimes | None
    """Measured step times; None where none were measured, and then all slots step."""

    def prefill(self, admissions: Sequence[Admission]) -> None:
        """Start requests in free slots."""
        ...

    def begin(self, slots: Sequence[int]) -> None:
        """Start to make one frame for each of the distinct slots, at most `max_batch_size`."""
        ...

    def read_stop_probabilities(self) -> list[float]:
        """Wait for the probabilities that these frames are their requests' last."""
        ...

    def finish(self, last: Sequence[bool]) -> None:
        """Start to decode what these frames complete; `last` marks streams that end with them."""
        ...

    def collect(self) -> list[np.ndarray]:
        """Wait for the decoded samples of the step finished last, float32 `[samples]` per slot."""
        ...


class OutputTrimmer(Protocol):
    """Removes from one stream of samples what should not be played, such as silence at its end."""

    def push(self, pcm: np.ndarray, last: bool) -> np.ndarray:
        """Take samples `[n]` and return those that may be played, float32 `[m]`."""


@dataclass(frozen=True)
class EncodedRecording:
    """A recording as a voice.

    `values` float32 `[n]` has the `latents` rows, then the `speaker` numbers of the speaker vector
    (0 where the checkpoint has none).
    """

    values: np.ndarray
    latents: int
    speaker: int


class SpeechModel(Protocol):
    """A loaded speech model."""

    @property
    def info(self) -> SpeechModelInfo:
        """Return what the model reports about itself."""

    @property
    def device(self) -> "torch.device":
        """Return where the model computes."""

    @property
    def voices(self) -> Mapping[str, Voice]:
        """Return the preset voices by name."""

    def no_voice(self) -> Voice:
        """Return what stands for a voice where nobody speaks: music and sounds."""

    def encode_voice(self, key: str, samples: "torch.Tensor", sample_rate: int) -> EncodedRecording:
        """Encode a recording `[n]` at `sample_rate` Hz. `key` fixes what is drawn at random."""

    def read_voice(self, key: str, text: str | None, values: "torch.Tensor", latents: int) -> Voice:
        """Return the voice that `encode_voice` described by `values` `[n]` and `latents`."""

    def prepare(self, text: str, voice: Voice, style: SpeechStyle) -> SpeechInput:
        """Return the input of one fragment."""

    def max_frames(self, text: str) -> int:
        """Return the most frames that reading `text` can reasonably take."""

    def open_executor(self, settings: ExecutorSettings) -> SpeechExecutor:
        """Return an executor with free slots."""

    def open_trimmer(self) -> OutputTrimmer:
        """Return a trimmer for one request."""
