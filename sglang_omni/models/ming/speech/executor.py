"""What carries a step of the talker out, and its plain form, one eager step at a time.

The form for CUDA devices is `sglang_omni/models/ming/speech/fast/graph_executor.py`.
"""

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Protocol

import numpy as np
import torch

from sglang_omni.engines.speech.pacing import StepTimes
from sglang_omni.models.ming.speech.cfm import Sampling
from sglang_omni.models.ming.speech.loading import SpeechModel
from sglang_omni.models.ming.speech.prompt import PromptIds, build_initial_history, embed_prompt
from sglang_omni.models.ming.speech.slots import TalkerSlots
from sglang_omni.models.ming.speech.step import StepOutput, run_decode_step
from sglang_omni.models.ming.speech.vae_slots import VaeSlots
from sglang_omni.models.ming.speech.voices import VoicePrompt


@dataclass(frozen=True)
class Admission:
    """A request that starts in `slot`."""

    slot: int
    prompt: PromptIds
    voice: VoicePrompt
    seed: int
    segment: int
    sampling: Sampling = field(default_factory=Sampling)


class Executor(Protocol):
    """Owns the device's state. Calls come in the order prefill*, begin, stops, finish, collect.

    Where `overlaps`, `collect` may wait until after the next `begin`, and the device is busy
    meanwhile. A slot may start another request once its last samples are collected.
    """

    overlaps: bool
    width: int
    """The most slots of one step."""
    pace: StepTimes | None
    """How fast steps were measured to be; None where nobody measured, and all slots step."""

    def prefill(self, admissions: Sequence[Admission]) -> None:
        """Start requests in free slots."""
        ...

    def begin(self, slots: Sequence[int]) -> None:
        """Start to make one patch for each of the distinct slots, at most `width`."""
        ...

    def stops(self) -> list[float]:
        """Wait for the probabilities that these patches are their requests' last."""
        ...

    def finish(self, last: Sequence[bool]) -> None:
        """Start to decode what these patches complete; `last` says whose streams end with them."""
        ...

    def collect(self) -> list[np.ndarray]:
        """Wait for the decoded samples of the step finished last, float32 [samples] per slot."""
        ...


class PlainExecutor:
    """Eager steps with the plain modules, on any device."""

    overlaps = False
    pace: StepTimes | None = None

    def __init__(self, model: SpeechModel, slots: int, context: int) -> None:
        self._model, self.width = model, slots
        self._slots = TalkerSlots(model.talker, slots, context)
        self._streams = VaeSlots(model.vae, slots)
        self._stepped: list[int] = []
        self._output: StepOutput | None = None
        self._samples: list[np.ndarray] = []

    @torch.inference_mode()
    def prefill(self, admissions: Sequence[Admission]) -> None:
        for one in admissions:
            talker, voice = self._model.talker, one.voice
            speakers = None if voice.speaker is None else voice.speaker[None]
            embeddings = embed_prompt(talker, one.prompt, speakers, voice.embeds)
            history = build_initial_history(talker, voice.latents)
            self._slots.prefill(one.slot, embeddings, history, one.seed, one.segment, one.sampling)
            self._streams.reset(one.slot)

    def begin(self, slots: Sequence[int]) -> None:
        self._stepped = list(slots)
        index = torch.tensor(self._stepped, device=self._slots.lengths.device)
        span = self._slots.span(int(self._slots.lengths[index].max()))
        self._output = run_decode_step(self._model.talker, self._slots, index, span)

    def stops(self) -> list[float]:
        assert self._output is not None
        return self._output.stop.tolist()

    def finish(self, last: Sequence[bool]) -> None:
        assert self._output is not None
        slots, ends = torch.tensor(self._stepped), torch.tensor(list(last))
        pcm = self._streams.decode(slots, self._output.latents, ends)
        self._samples = [samples.numpy() for samples in pcm]

    def collect(self) -> list[np.ndarray]:
        return self._samples
