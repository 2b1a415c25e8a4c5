"""What carries a step of the talker out, and its plain form, one eager step at a time.

The form for CUDA devices is `sglang_omni/models/ming/speech/fast/graph_executor.py`.
"""

from collections.abc import Sequence

import numpy as np
import torch

from sglang_omni.models.ming.speech.modules import SpeechModules
from sglang_omni.models.ming.speech.prompt import embed_prompt, initial_history
from sglang_omni.models.ming.speech.slots import TalkerSlots
from sglang_omni.models.ming.speech.step import StepOutput, decode_step
from sglang_omni.models.ming.speech.vae_slots import VaeSlots
from sglang_omni.models.speech import Admission, StepTimes


class PlainExecutor:
    """Eager steps with the plain modules, on any device."""

    overlaps = False
    pace: StepTimes | None = None

    def __init__(self, model: SpeechModules, slots: int, context: int) -> None:
        self._model, self.width = model, slots
        self._slots = TalkerSlots(model.talker, slots, context)
        self._streams = VaeSlots(model.vae, slots)
        self._stepped: list[int] = []
        self._output: StepOutput | None = None
        self._samples: list[np.ndarray] = []

    @torch.inference_mode()
    def prefill(self, admissions: Sequence[Admission]) -> None:
        for one in admissions:
            talker, voice = self._model.talker, one.input.voice
            speakers = None if voice.speaker is None else voice.speaker[None]
            embeddings = embed_prompt(talker, one.input.prompt, speakers, voice.embeds)
            history = initial_history(talker, voice.latents)
            self._slots.prefill(
                one.slot, embeddings, history, one.seed, one.segment, one.input.sampling
            )
            self._streams.reset(one.slot)

    def begin(self, slots: Sequence[int]) -> None:
        self._stepped = list(slots)
        index = torch.tensor(self._stepped, device=self._slots.lengths.device)
        span = self._slots.span(int(self._slots.lengths[index].max()))
        self._output = decode_step(self._model.talker, self._slots, index, span)

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
