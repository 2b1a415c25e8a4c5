"""One batched step on the device, in its two parts: backbone with stop head, then the patch.

The same arithmetic as `talker/step.py`. It is cut in two because the stop rule looks at the state
before the patch: the host reads the answer while the patch is still being made, and has queued the
next step before this one ends.
"""

from collections.abc import Callable

import torch
from torch import Tensor

from sglang_omni.models.ming.speech.cfm import compute_sway_schedule
from sglang_omni.models.ming.speech.fast.layers import (
    FirstBlock,
    run_decoder_layers,
    run_flow_blocks,
)
from sglang_omni.models.ming.speech.fast.ops import Ops
from sglang_omni.models.ming.speech.fast.packed import pack_decoder, pack_flow
from sglang_omni.models.ming.speech.fast.state import SlotState
from sglang_omni.models.ming.speech.kernels.decode import decode_attention
from sglang_omni.models.ming.speech.kernels.flow import (
    apply_guidance,
    assemble_guidance_pair,
    assemble_patch,
    embed_history,
    store_patch,
)
from sglang_omni.models.ming.speech.kernels.noise import fill_slot_noise
from sglang_omni.models.ming.speech.kernels.rows import compute_stop_probability
from sglang_omni.models.ming.speech.talker import Talker

OpsSelector = Callable[[int], Ops]
"""Chooses ops by the number of rows."""


class FastStep:
    """Packed talker weights, the constants of the sampler, and the slots they advance.

    With `fp8` the flow model has weights in eight bits too, for ops that use them.
    """

    def __init__(self, talker: Talker, state: SlotState, *, fp8: bool = False) -> None:
        config, flow = talker.config, talker.cfm.model
        self._talker, self._state = talker, state
        self._patch = (config.patch_size, config.latent_dim)
        self.backbone = pack_decoder(talker.model, state.context)
        length = 1 + config.history_patch_size + config.patch_size
        self._flow = pack_flow(flow, length, fp8=fp8)
        self._aggregator = pack_flow(talker.aggregator, 1 + config.patch_size)
        like = talker.stop_head.weight
        times = compute_sway_schedule(talker.cfm.steps, like.dtype, like.device)
        # The schedule is fixed, so its embeddings are constants.
        self._times = flow.t_embedder(times[:-1])
        self._steps = times.diff().tolist()
        self._null = flow.c_embedder(like.new_zeros(1, config.llm.hidden_size))[0]

    def run_backbone(self, index: Tensor, ops: Ops) -> tuple[Tensor, Tensor]:
        """Run the backbone one position on for the slots `index` [n].

        Returns its states [n, hidden] and the float32 probabilities [n] that this patch is last.
        """
        state, stack = self._state, self.backbone
        x = state.next_embed.index_select(0, index)

        def attend(layer: int, qkv: Tensor) -> Tensor:
            return decode_attention(
                qkv,
                state.keys[layer],
                state.values[layer],
                index,
                state.lengths,
                stack.cos,
                stack.sin,
                pdl=ops.pdl,
            )

        hidden = run_decoder_layers(stack, x, attend, ops)
        head = self._talker.stop_head
        return hidden, compute_stop_probability(hidden, head.weight, head.bias)

    def sample_patch(self, index: Tensor, hidden: Tensor, ops_for: OpsSelector) -> None:
        """Sample one patch for each slot and note it, with its embedding, in the slots."""
        slots = self._state
        y, noise = self._draw(index, hidden)
        self._sample(index, hidden, y, noise, ops_for)
        store_patch(
            y,
            self._aggregate(y, ops_for),
            index,
            slots.ring,
            slots.next_embed,
            slots.lengths,
            slots.patches,
            slots.past,
        )

    def _draw(self, index: Tensor, like: Tensor) -> tuple[Tensor, Tensor]:
        """Initial noise [n, patch, latent], and that of the steps [n, steps, patch, latent], which
        is filled only for the slots that want it."""
        slots, steps = self._state, len(self._steps)
        y = torch.empty(len(index), *self._patch, device=like.device, dtype=torch.float32)
        noise = y.new_empty(len(index), steps, *self._patch)
        counters = (slots.seeds, slots.segments, slots.patches, index)
        fill_slot_noise(*counters, y, like)
        fill_slot_noise(*counters, noise, like, first=y[0].numel(), wanted=slots.noise_scale)
        return y, noise

    def _sample(
        self, index: Tensor, hidden: Tensor, y: Tensor, noise: Tensor, ops_for: OpsSelector
    ) -> None:
        """Move y [n, patch, latent], which is noise, to a patch, in place."""
        flow, slots = self._flow, self._state
        condition = self._talker.cfm.model.c_embedder(hidden)
        rows = slots.past * self._patch[0]
        history = embed_history(slots.ring, index, slots.patches, rows, flow.embed, flow.embed_bias)
        sequences, patch = 2 * len(index), self._patch[0]
        ops, tail = ops_for(sequences * len(flow.cos)), ops_for(sequences * patch)
        first, pdl = FirstBlock(flow, ops, patch), ops.pdl and tail.pdl
        for step, (time, dt) in enumerate(zip(self._times, self._steps, strict=True)):
            tokens = assemble_guidance_pair(
                time,
                condition,
                self._null,
                history,
                y,
                flow.embed,
                flow.embed_bias,
                pdl=pdl,
            )
            made = run_flow_blocks(flow, tokens, slice(-patch, None), ops, tail, first)
            velocity = tail.norm_linear(made, flow.final_norm, flow.final)
            apply_guidance(
                velocity,
                y,
                index,
                slots.cfg,
                slots.noise_scale,
                noise[:, step],
                dt=dt,
                pdl=pdl,
            )

    def _aggregate(self, y: Tensor, ops_for: OpsSelector) -> Tensor:
        """The backbone's next inputs [n, hidden] for patches y."""
        stack = self._aggregator
        cls = self._talker.aggregator.word_embedder.weight[0]
        tokens = assemble_patch(cls, y, stack.embed, stack.embed_bias)
        ops, tail = ops_for(len(y) * len(stack.cos)), ops_for(len(y))
        rows = run_flow_blocks(stack, tokens, slice(0, 1), ops, tail)
        return tail.norm_linear(rows, stack.final_norm, stack.final)
