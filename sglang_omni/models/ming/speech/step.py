"""One batched decode step of the talker: every chosen slot gains one patch.

The slotted form of the loop in `talker.py`, and the plain reference of `fast/step.py`, which runs
on CUDA devices.
"""

from dataclasses import dataclass

import torch
from torch import Tensor

from sglang_omni.models.ming.speech.cfm import CFM, RowSampling
from sglang_omni.models.ming.speech.slots import DecodeContext, TalkerSlots
from sglang_omni.models.ming.speech.talker import Talker


@dataclass(frozen=True)
class StepOutput:
    """Result of a step, on the device: `latents` [n, patch, latent] and `stop` [n].

    `stop` is the float32 probability that the patch is the last of its request.
    """

    latents: Tensor
    stop: Tensor


@torch.inference_mode()
def run_decode_step(
    talker: Talker, slots: TalkerSlots, index: Tensor, span: int, cfm: CFM | None = None
) -> StepOutput:
    """Advance the slots `index` (int64 [n], distinct, on the device) by one patch.

    `span` bounds the cache positions that are read; see `TalkerSlots.select_span`. `cfm` samples
    the patches, in place of the talker's own sampler.
    """
    sampling = RowSampling(slots.cfg[index], slots.noise_scale[index])
    hidden = talker.model(slots.next_embed[index][:, None], DecodeContext(slots, index, span))[:, 0]
    noise = talker.sample_patch_noise(
        slots.seed[index], slots.segment[index], slots.patch[index], sampling
    )
    latents = (cfm or talker.cfm).sample(hidden, slots.history[index], *noise, sampling)
    slots.advance(index, latents, talker.aggregator(latents))
    return StepOutput(latents, talker.compute_stop_probabilities(hidden)[:, 1])
