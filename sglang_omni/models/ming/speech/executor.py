"""The interface that runs decode steps of the talker, and its eager form.

The form for CUDA devices is `sglang_omni/models/ming/speech/fast/graph_executor.py`.
"""

from collections.abc import Sequence

import numpy as np
import torch

from sglang_omni.models.ming.speech.modules import SpeechModules
from sglang_omni.models.ming.speech.packed_flow import PackedCFM
from sglang_omni.models.ming.speech.prompt import build_initial_history, embed_prompt
from sglang_omni.models.ming.speech.slots import TalkerSlots
from sglang_omni.models.ming.speech.step import StepOutput, run_decode_step
from sglang_omni.models.ming.speech.vae_slots import VaeSlots
from sglang_omni.models.speech import Admission, StepTimes


class PlainExecutor:
    """Run eager steps of the plain modules, on any device."""

    overlaps = False
    step_times: StepTimes | None = None

    def __init__(self, model: SpeechModules, slots: int, context: int) -> None:
        self._model, self.max_batch_size = model, slots
        self._slots = TalkerSlots(model.talker, slots, context)
        weight = model.talker.stop_head.weight
        packs = weight.device.type == "cpu" and weight.dtype == torch.float32
        self._cfm = PackedCFM(model.talker.cfm) if packs else model.talker.cfm
        self._streams = VaeSlots(model.vae, slots, model.talker.config.patch_size)
        self._step_slots: list[int] = []
        self._output: StepOutput | None = None
        self._samples: list[np.ndarray] = []

    @torch.inference_mode()
    def prefill(self, admissions: Sequence[Admission]) -> None:
        """Write the prompts of the requests to their slots, one after the other."""
        for admission in admissions:
            request = admission.input
            talker, voice = self._model.talker, request.voice
            speaker = None if voice.speaker is None else voice.speaker[None]
            embeddings = embed_prompt(talker, request.prompt, speaker, voice.embeds)
            history = build_initial_history(talker, voice.latents)
            self._slots.prefill(
                admission.slot,
                embeddings,
                history,
                admission.seed,
                admission.segment,
                request.sampling,
            )
            self._streams.reset(admission.slot)

    def begin(self, slots: Sequence[int]) -> None:
        """Run the step for these slots."""
        self._step_slots = list(slots)
        index = torch.tensor(self._step_slots, device=self._slots.lengths.device)
        span = self._slots.select_span(int(self._slots.lengths[index].max()))
        self._output = run_decode_step(self._model.talker, self._slots, index, span, self._cfm)

    def read_stop_probabilities(self) -> list[float]:
        """Return the stop probabilities of the step, one per slot."""
        assert self._output is not None
        return self._output.stop.tolist()

    def finish(self, last: Sequence[bool]) -> None:
        """Decode the patches of the step; `last` marks streams that end with it."""
        assert self._output is not None
        slots, is_last = torch.tensor(self._step_slots), torch.tensor(list(last))
        pcm = self._streams.decode(slots, self._output.latents, is_last)
        self._samples = [samples.numpy() for samples in pcm]

    def collect(self) -> list[np.ndarray]:
        """Return the samples that `finish` decoded, float32 [samples] per slot."""
        return self._samples
