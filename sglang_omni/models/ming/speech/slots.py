"""State of the talker's requests: one slot per running request, one row per slot in every tensor.

Nothing is allocated after the start, and a step addresses rows by a tensor of slot numbers. So a
step of a given batch size and span is the same sequence of kernels every time.
"""

import torch
import torch.nn.functional as F
from torch import Tensor

from sglang_omni.models.ming.speech.cfm import Sampling
from sglang_omni.models.ming.speech.qwen2 import FullContext
from sglang_omni.models.ming.speech.talker import Talker

SPAN_BUCKET = 128


class TalkerSlots:
    """Backbone cache and decode state of `count` slots with `context` positions each.

    `keys` and `values` are [layers, slots, kv_heads, context, head_dim]. Per slot: `lengths`, the
    number of written cache entries; `next_embed` [slots, hidden], the next input of the backbone;
    `history` [slots, past, latent]; the noise counters `seed`, `segment` and `patch` (int64
    [slots]); and the sampling parameters `cfg` and `noise_scale` ([slots]).
    """

    def __init__(self, talker: Talker, count: int, context: int) -> None:
        config, like = talker.config, talker.stop_head.weight
        llm = config.llm
        shape = (llm.num_hidden_layers, count, llm.num_key_value_heads, context, llm.head_dim)
        self._talker, self.count, self.context = talker, count, context
        self.keys, self.values = like.new_zeros(shape), like.new_zeros(shape)
        self.next_embed = like.new_zeros(count, llm.hidden_size)
        self.history = like.new_zeros(count, config.history_patch_size, config.latent_dim)
        counters = like.new_zeros(4, count, dtype=torch.int64)
        self.lengths, self.seed, self.segment, self.patch = counters.unbind()
        self.cfg, self.noise_scale = like.new_zeros(2, count).unbind()

    def prefill(
        self,
        slot: int,
        embeddings: Tensor,
        history: Tensor,
        seed: int,
        segment: int,
        sampling: Sampling = Sampling(),  # noqa: B008 - frozen
    ) -> None:
        """Start a request in `slot` from prompt `embeddings` [length, hidden], length >= 2.

        All rows but the last go into the cache. The last row is the input of the first decode step,
        which is thus a step like any other. `history` is [past, latent].
        """
        prompt = embeddings[None, :-1]
        self._talker.model(prompt, PrefillContext(self, slot, prompt))
        self.next_embed[slot] = embeddings[-1]
        self.history[slot] = history
        self.lengths[slot] = prompt.shape[1]
        self.seed[slot], self.segment[slot] = to_int64(seed), to_int64(segment)
        self.patch[slot] = 0
        self.cfg[slot], self.noise_scale[slot] = sampling.cfg, sampling.noise_scale

    def advance(self, index: Tensor, latents: Tensor, embeds: Tensor) -> None:
        """Record one generated patch [n, patch, latent] and its embedding [n, hidden] per slot."""
        past = self.history[index, latents.shape[1] :]
        self.history[index] = torch.cat((past, latents), dim=1)
        self.next_embed[index] = embeds
        self.lengths[index] += 1
        self.patch[index] += 1

    def select_span(self, max_length: int) -> int:
        """Return how many cache positions a step reads if its longest slot holds `max_length`.

        The number is rounded up to a bucket, so that few different shapes occur.
        """
        needed = max_length + 1
        return min(-(-needed // SPAN_BUCKET) * SPAN_BUCKET, self.context)


class PrefillContext(FullContext):
    """Causal attention over a prompt that stores its keys and values in a slot."""

    def __init__(self, slots: TalkerSlots, slot: int, prompt: Tensor) -> None:
        super().__init__(slots._talker.model, prompt)
        self._slots, self._slot = slots, slot

    def attend(self, layer: int, q: Tensor, k: Tensor, v: Tensor) -> Tensor:
        """Store k and v in the slot, then attend among the positions of the prompt."""
        self._slots.keys[layer, self._slot, :, : k.shape[2]] = k[0]
        self._slots.values[layer, self._slot, :, : v.shape[2]] = v[0]
        return super().attend(layer, q, k, v)


class DecodeContext:
    """Attention of one position per slot: store its key and value, attend over the slot's cache.

    `index` [n] holds distinct slots; the first `span` cache positions are read.
    """

    def __init__(self, slots: TalkerSlots, index: Tensor, span: int) -> None:
        self._slots, self._index, self._span = slots, index, span
        self._positions = slots.lengths[index]
        self.cos, self.sin = slots._talker.model.compute_tables(
            self._positions[:, None], slots.next_embed.dtype
        )
        keys = torch.arange(span, device=index.device)
        # Entries beyond the length are stale: an earlier request of the slot wrote them.
        self._mask = (keys <= self._positions[:, None])[:, None, None]

    def attend(self, layer: int, q: Tensor, k: Tensor, v: Tensor) -> Tensor:
        """Store k and v of one position per slot, then attend over each slot's cache."""
        k = self._store(self._slots.keys[layer], k)
        v = self._store(self._slots.values[layer], v)
        return F.scaled_dot_product_attention(q, k, v, attn_mask=self._mask, enable_gqa=True)

    def _store(self, cache: Tensor, new: Tensor) -> Tensor:
        """Store `new` [n, kv_heads, 1, dim] at each slot's position and gather the spans."""
        cache[self._index, :, self._positions] = new[:, :, 0]
        return cache[:, :, : self._span][self._index]


def to_int64(value: int) -> int:
    """Return the 64 low bits of `value` as a signed number."""
    return (value + (1 << 63)) % (1 << 64) - (1 << 63)
