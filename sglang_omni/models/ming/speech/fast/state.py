"""The device's side of the talker's slots: one row per slot, and a spare one that fills batches."""

import torch
from torch import Tensor

from sglang_omni.models.ming.speech.talker import Talker

# Beside the history: the patch being made and the one that the vocoder has yet to read.
RING_MARGIN = 2


class SlotState:
    """Backbone cache and loop state of `count` slots, and of the spare slot `count`.

    `keys` and `values` are [layers, slots, kv_heads, context, head_dim]. Per slot: `next_embed`
    [slots, hidden], the backbone's next input; `ring` [slots, entries, patch, latent], the latest
    patches (see `kernels/flow.py`); `lengths`, cache entries that are written; the counters of the
    noise, `seeds`, `segments` and `patches` (int64 [slots]); and how patches are sampled, `cfg` and
    `noise_scale` (float32 [slots]).
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
        """Where in the ring the patches with these numbers lie."""
        return (patches + self.past) % self.ring.shape[1]
