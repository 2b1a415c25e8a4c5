"""One batched step on the device, in its two parts: backbone with stop head, then the patch.

The same arithmetic as `talker/step.py`. It is cut in two because the stop rule looks at the state
before the patch: the host reads the answer while the patch is still being made, and has queued the
next step before this one ends.
"""

from collections.abc import Callable

import torch
from torch import Tensor

from sglang_omni.errors import ConfigError
from sglang_omni.models.ming.cfm import Sampling, sway_schedule
from sglang_omni.models.ming.talker import Talker
from sglang_omni.talker.fast.layers import FirstBlock, run_decoder_layers, run_flow_blocks
from sglang_omni.talker.fast.ops import Ops
from sglang_omni.talker.fast.packed import pack_decoder, pack_flow
from sglang_omni.talker.fast.state import SlotState
from sglang_omni.talker.kernels.decode import decode_attention
from sglang_omni.talker.kernels.flow import (
    assemble_pair,
    assemble_patch,
    embed_history,
    finish_patch,
    guide,
)
from sglang_omni.talker.kernels.noise import slot_noise
from sglang_omni.talker.kernels.rows import stop_probability

OpsFor = Callable[[int], Ops]
"""Chooses ops by the number of rows."""


class FastStep:
    """Packed talker weights, the constants of the sampler, and the slots they advance.

    With `fp8` the flow model has weights in eight bits too, for ops that use them.
    """

    def __init__(
        self, talker: Talker, state: SlotState, how: Sampling, *, fp8: bool = False
    ) -> None:
        if how.stochastic:
            raise ConfigError("the talker's CUDA step has no noise between flow steps")
        config, flow = talker.config, talker.cfm.model
        self._talker, self._state, self._cfg = talker, state, how.cfg
        self._patch = (config.patch_size, config.latent_dim)
        self.backbone = pack_decoder(talker.model, state.context)
        length = 1 + config.history_patch_size + config.patch_size
        self._flow = pack_flow(flow, length, fp8=fp8)
        self._aggregator = pack_flow(talker.aggregator, 1 + config.patch_size)
        like = talker.stop_head.weight
        times = sway_schedule(talker.cfm.steps, like.dtype, like.device)
        # The schedule is fixed, so its embeddings are constants.
        self._times = flow.t_embedder(times[:-1])
        self._steps = times.diff().tolist()
        self._null = flow.c_embedder(like.new_zeros(1, config.llm.hidden_size))[0]

    def look(self, index: Tensor, ops: Ops) -> tuple[Tensor, Tensor]:
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
                chained=ops.chained,
            )

        hidden = run_decoder_layers(stack, x, attend, ops)
        head = self._talker.stop_head
        return hidden, stop_probability(hidden, head.weight, head.bias)

    def make(self, index: Tensor, hidden: Tensor, ops_for: OpsFor) -> None:
        """Sample one patch for each slot and note it, with its embedding, in the slots."""
        slots = self._state
        y = torch.empty(len(index), *self._patch, device=hidden.device, dtype=torch.float32)
        slot_noise(slots.seeds, slots.segments, slots.patches, index, y, hidden)
        self._sample(index, hidden, y, ops_for)
        finish_patch(
            y,
            self._aggregate(y, ops_for),
            index,
            slots.ring,
            slots.next_embed,
            slots.lengths,
            slots.patches,
            slots.past,
        )

    def _sample(self, index: Tensor, hidden: Tensor, y: Tensor, ops_for: OpsFor) -> None:
        """Move noise y [n, patch, latent] to a patch, in place."""
        flow, slots = self._flow, self._state
        condition = self._talker.cfm.model.c_embedder(hidden)
        rows = slots.past * self._patch[0]
        history = embed_history(slots.ring, index, slots.patches, rows, flow.embed, flow.embed_bias)
        sequences = 2 * len(index)
        ops, tail = ops_for(sequences * len(flow.cos)), ops_for(sequences * self._patch[0])
        first = FirstBlock(flow, ops, self._patch[0])
        for time, dt in zip(self._times, self._steps, strict=True):
            tokens = assemble_pair(
                time, condition, self._null, history, y, flow.embed, flow.embed_bias
            )
            made = run_flow_blocks(flow, tokens, slice(-self._patch[0], None), ops, tail, first)
            velocity = tail.norm_linear(made, flow.final_norm, flow.final)
            guide(velocity, y, dt=dt, cfg=self._cfg)

    def _aggregate(self, y: Tensor, ops_for: OpsFor) -> Tensor:
        """The backbone's next inputs [n, hidden] for patches y."""
        stack = self._aggregator
        cls = self._talker.aggregator.word_embedder.weight[0]
        tokens = assemble_patch(cls, y, stack.embed, stack.embed_bias)
        ops, tail = ops_for(len(y) * len(stack.cos)), ops_for(len(y))
        rows = run_flow_blocks(stack, tokens, slice(0, 1), ops, tail)
        return tail.norm_linear(rows, stack.final_norm, stack.final)
