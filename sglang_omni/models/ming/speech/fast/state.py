"""Slot state of the talker on the device: one row per slot, and a spare row that pads batches."""

import torch
from torch import Tensor

from sglang_omni.models.ming.speech.talker import Talker

# Beyond the history: the patch being generated, and the one the vocoder has not read yet.
RING_MARGIN = 2


class SlotState:
    """Backbone cache and decode state of `count` slots, and of the spare slot `count`.

    `keys` and `values` are [layers, slots, kv_heads, context, head_dim]. Per slot: `next_embed`
    [slots, hidden], the next input of the backbone; `ring` [slots, entries, patch, latent], the
    latest patches (see `kernels/flow.py`); `lengths`, the number of written cache entries; the
    noise counters `seeds`, `segments` and `patches` (int64 [slots]); and the sampling parameters
    `cfg` and `noise_scale` (float32 [slots]).
    """

    def __init__(self, talker: Talker, count: int, context: int) -> None:
        config, like = talker.config, talker.stop_head.weight
        llm = config.llm
        self.spare, self.context, rows = count, context, count + 1
        self.past = config.history_patch_size // config.patch_size
        cache = (llm.num_hidden_layers, rows, llm.num_key_value_heads, context, llm.head_dim)
        self.keys, self.values = like.new_zeros(cache), like.new_zeros(cache)
        self.next_embed = like.new_zeros(rows, llm.hidden_size)
        ring = (rows, self.past + RING_MARGIN, config.patch_size, config.latent_dim)
        self.ring = like.new_zeros(ring)
        counters = like.new_zeros(4, rows, dtype=torch.int64)
        self.lengths, self.seeds, self.segments, self.patches = counters.unbind()
        self.cfg, self.noise_scale = like.new_zeros(2, rows, dtype=torch.float32).unbind()

    def entry(self, patches: Tensor) -> Tensor:
        """Return the ring entries of the patches with these numbers."""
        return (patches + self.past) % self.ring.shape[1]
