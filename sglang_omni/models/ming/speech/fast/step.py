"""One batched decode step on the device, in two parts: backbone with stop head, then the patch.

The same arithmetic as `sglang_omni/models/ming/speech/step.py`. There are two parts because the
stop rule uses the state before the patch: the host reads the stop probabilities while the patch
is still being generated, and queues the next step before this one ends.
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
"""Selects the ops for a number of rows."""


class FastStep:
    """Packed talker weights, sampler constants, and the slots that the steps advance.

    With `fp8` the flow model has FP8 weights too, for the ops that use them.
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
        schedule = compute_sway_schedule(talker.cfm.steps, like.dtype, like.device)
        # The schedule is fixed, so its embeddings are constant.
        self._times = flow.t_embedder(schedule[:-1])
        self._steps = schedule.diff().tolist()
        self._null = flow.c_embedder(like.new_zeros(1, config.llm.hidden_size))[0]

    def run_backbone(self, index: Tensor, ops: Ops) -> tuple[Tensor, Tensor]:
        """Run the backbone for the next position of the slots `index` [n].

        Returns:
            Its states [n, hidden], and float32 probabilities [n] that this patch is the last.
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

    def sample_patch(self, index: Tensor, hidden: Tensor, select_ops: OpsSelector) -> None:
        """Sample one patch per slot and store it and its embedding in the slots."""
        slots = self._state
        y, noise = self._draw_noise(index, hidden)
        self._run_sampler(index, hidden, y, noise, select_ops)
        store_patch(
            y,
            self._aggregate(y, select_ops),
            index,
            slots.ring,
            slots.next_embed,
            slots.lengths,
            slots.patches,
            slots.past,
        )

    def _draw_noise(self, index: Tensor, like: Tensor) -> tuple[Tensor, Tensor]:
        """Return initial noise [n, patch, latent] and step noise [n, steps, patch, latent].

        The step noise is filled only for slots that use it.
        """
        slots, steps = self._state, len(self._steps)
        y = torch.empty(len(index), *self._patch, device=like.device, dtype=torch.float32)
        noise = y.new_empty(len(index), steps, *self._patch)
        counters = (slots.seeds, slots.segments, slots.patches, index)
        fill_slot_noise(*counters, y, like)
        fill_slot_noise(*counters, noise, like, first=y[0].numel(), enabled=slots.noise_scale)
        return y, noise

    def _run_sampler(
        self, index: Tensor, hidden: Tensor, y: Tensor, noise: Tensor, select_ops: OpsSelector
    ) -> None:
        """Turn the noise y [n, patch, latent] into a patch, in place."""
        flow, slots = self._flow, self._state
        condition = self._talker.cfm.model.c_embedder(hidden)
        rows = slots.past * self._patch[0]
        history = embed_history(slots.ring, index, slots.patches, rows, flow.embed, flow.embed_bias)
        sequences, patch = 2 * len(index), self._patch[0]
        ops, tail_ops = select_ops(sequences * len(flow.cos)), select_ops(sequences * patch)
        first, pdl = FirstBlock(flow, ops, patch), ops.pdl and tail_ops.pdl
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
            hidden_tail = run_flow_blocks(flow, tokens, slice(-patch, None), ops, tail_ops, first)
            velocity = tail_ops.norm_linear(hidden_tail, flow.final_norm, flow.final)
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

    def _aggregate(self, y: Tensor, select_ops: OpsSelector) -> Tensor:
        """Return the next inputs of the backbone, [n, hidden], for patches y."""
        stack = self._aggregator
        cls = self._talker.aggregator.word_embedder.weight[0]
        tokens = assemble_patch(cls, y, stack.embed, stack.embed_bias)
        ops, tail_ops = select_ops(len(y) * len(stack.cos)), select_ops(len(y))
        rows = run_flow_blocks(stack, tokens, slice(0, 1), ops, tail_ops)
        return tail_ops.norm_linear(rows, stack.final_norm, stack.final)
