"""Prompts of several requests, packed one after the other into one pass over the backbone.

The plain form is `TalkerSlots.prefill`. All rows of a prompt but the last go into its slot's cache;
the last is the first step's input, so that the first step is a step like any other.
"""

from collections import OrderedDict
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import torch
import torch.nn.functional as F
from torch import Tensor

from sglang_omni.models.ming.speech.executor import Admission
from sglang_omni.models.ming.speech.fast.layers import run_decoder_layers
from sglang_omni.models.ming.speech.fast.ops import Ops
from sglang_omni.models.ming.speech.fast.packed import DecoderStack
from sglang_omni.models.ming.speech.fast.state import SlotState
from sglang_omni.models.ming.speech.prompt import PromptIds, build_initial_history
from sglang_omni.models.ming.speech.qwen2 import rotate_half
from sglang_omni.models.ming.speech.slots import to_int64
from sglang_omni.models.ming.speech.talker import Talker
from sglang_omni.models.ming.speech.voices import VoicePrompt

MAX_PROMPTS = 16
"""The most prompts of one pass."""
PROMPT_FIELDS = 8
"""Integers that a pass is told of each."""
MAX_CLONES = 64
"""Cloned voices that have rows at once; more than one pass can name."""
ROWS_PER_CLONE = 97
"""Rows of a cloned voice: 96 patches, which are thirty seconds and more, and the speaker."""
NO_PROMPT = -1


@dataclass(frozen=True)
class VoiceLocation:
    """Where a voice lies: `number` is its row of `history`, `first` its first row of `rows`, that
    of its speaker vector; its patches follow."""

    number: int
    first: int


VoiceKey = tuple[str, str | None]


class VoiceTable:
    """The voices' embeddings and histories on the device, in rows that a prompt can point at.

    A prompt token at or beyond `vocabulary` stands for row token - vocabulary of `rows`. Presets
    stay where they are; a cloned voice takes the place of the one that was used longest ago, which
    the prompts of earlier passes need no more.
    """

    def __init__(
        self, talker: Talker, voices: dict[str, VoicePrompt], clones: int = MAX_CLONES
    ) -> None:
        self._talker, like = talker, talker.stop_head.weight
        self.vocabulary = talker.model.embed_tokens.num_embeddings
        own = sum(1 + len(voice.embeds) for voice in voices.values())
        self.rows = like.new_zeros(own + clones * ROWS_PER_CLONE, talker.config.llm.hidden_size)
        past, latent = talker.config.history_patch_size, talker.config.latent_dim
        self.history = like.new_zeros(len(voices) + clones, past, latent)
        self._presets: dict[VoiceKey, VoiceLocation] = {}
        first = 0
        for number, voice in enumerate(voices.values()):
            self._presets[_voice_key(voice)] = self._fill(voice, VoiceLocation(number, first))
            first += 1 + len(voice.embeds)
        self._clones: OrderedDict[VoiceKey, VoiceLocation] = OrderedDict()
        self._free = [
            VoiceLocation(len(voices) + n, own + n * ROWS_PER_CLONE) for n in range(clones)
        ]

    def place(self, voice: VoicePrompt) -> VoiceLocation:
        """Where a voice lies; one that is not there is put there, on the current stream."""
        key = _voice_key(voice)
        if key in self._presets:
            return self._presets[key]
        if key not in self._clones:
            free = self._free.pop() if self._free else self._clones.popitem(last=False)[1]
            self._clones[key] = self._fill(voice, free)
        self._clones.move_to_end(key)
        return self._clones[key]

    def tokens(self, prompt: PromptIds, place: VoiceLocation) -> np.ndarray:
        """The prompt's tokens, int64 [length], those that a voice replaces pointing at its rows."""
        ids, first = np.array(prompt.ids), self.vocabulary + place.first
        ids[list(prompt.speaker_rows)] = first
        audio = slice(prompt.audio_row, prompt.audio_row + prompt.audio_patches)
        ids[audio] = np.arange(first + 1, first + 1 + prompt.audio_patches)
        return ids

    def _fill(self, voice: VoicePrompt, place: VoiceLocation) -> VoiceLocation:
        rows = self.rows[place.first :]
        if voice.speaker is not None:
            rows[0] = voice.speaker
        rows[1 : 1 + len(voice.embeds)] = voice.embeds
        self.history[place.number] = build_initial_history(self._talker, voice.latents)
        return place


def _voice_key(voice: VoicePrompt) -> VoiceKey:
    return voice.name, voice.text


@dataclass(frozen=True)
class PackedPrompts:
    """One pass's integers: `tokens` [4, size] and `prompts` [PROMPT_ROWS, PROMPTS], int64.

    Rows of `tokens`: id, position, slot, prompt number. Rows of `prompts`: last id, slot, cached
    length, voice, seed, segment, and the bits of the float32 numbers cfg and noise scale. What is
    unused belongs to the spare slot.
    """

    tokens: np.ndarray
    prompts: np.ndarray


def pack_prompts(
    admissions: Sequence[Admission], voices: VoiceTable, size: int, spare: int
) -> PackedPrompts:
    """Lay out at most `MAX_PROMPTS` prompts, together at most `size` + one token each."""
    tokens = np.zeros((4, size), np.int64)
    tokens[2:] = [[spare], [NO_PROMPT]]
    prompts = np.zeros((PROMPT_FIELDS, MAX_PROMPTS), np.int64)
    prompts[1] = spare
    start = 0
    for number, one in enumerate(admissions):
        place = voices.place(one.voice)
        ids = voices.tokens(one.prompt, place)
        end = start + len(ids) - 1
        slot = np.full(end - start, one.slot)
        tokens[:, start:end] = ids[:-1], np.arange(end - start), slot, np.full_like(slot, number)
        noise = to_int64(one.seed), to_int64(one.segment)
        how = _float32_bits(one.sampling.cfg), _float32_bits(one.sampling.noise_scale)
        prompts[:, number] = ids[-1], one.slot, end - start, place.number, *noise, *how
        start = end
    return PackedPrompts(tokens, prompts)


def _float32_bits(number: float) -> int:
    """A float32 number as the integer of the same bits."""
    return int(np.float32(number).view(np.int32))


def count_fitting(admissions: Sequence[Admission], size: int) -> int:
    """How many of the first admissions one pass of `size` tokens holds."""
    total = count = 0
    for one in admissions[:MAX_PROMPTS]:
        total += len(one.prompt.ids) - 1
        if total > size:
            break
        count += 1
    return count


class PackedPrefill:
    """One pass over packed prompts; a fixed sequence of kernels for each size."""

    def __init__(
        self, talker: Talker, stack: DecoderStack, state: SlotState, voices: VoiceTable
    ) -> None:
        self._talker, self._stack, self._state, self._voices = talker, stack, state, voices

    def run(self, tokens: Tensor, prompts: Tensor, ops: Ops) -> None:
        """Start requests in their slots from `PackedPrompts` integers on the device."""
        ids, positions, slots, owners = tokens.unbind()
        seen = (owners[:, None] == owners[None]) & (positions[:, None] >= positions[None])
        x = self._embed(ids)
        attend = PackedAttention(self._state, self._stack, positions, slots, seen)
        run_decoder_layers(self._stack, x, attend, ops)
        self._begin(*prompts.unbind())

    def _begin(
        self,
        ids: Tensor,
        slots: Tensor,
        lengths: Tensor,
        voices: Tensor,
        seed: Tensor,
        part: Tensor,
        cfg: Tensor,
        noise_scale: Tensor,
    ) -> None:
        state = self._state
        state.next_embed[slots] = self._embed(ids)
        history = self._voices.history[voices]
        state.ring[slots, : state.past] = history.unflatten(1, (state.past, -1))
        state.lengths[slots], state.patches[slots] = lengths, torch.zeros_like(lengths)
        state.seeds[slots], state.segments[slots] = seed, part
        state.cfg[slots] = cfg.to(torch.int32).view(torch.float32)
        state.noise_scale[slots] = noise_scale.to(torch.int32).view(torch.float32)

    def _embed(self, ids: Tensor) -> Tensor:
        """Embeddings [n, hidden] of token ids and of rows of voices."""
        table, size = self._talker.model.embed_tokens.weight, self._voices.vocabulary
        words = table[ids.clamp_max(size - 1)]
        voiced = self._voices.rows[(ids - size).clamp_min(0)]
        return torch.where((ids < size)[:, None], words, voiced)


class PackedAttention:
    """Causal attention within each packed prompt, which leaves keys and values in the slots."""

    def __init__(
        self, state: SlotState, stack: DecoderStack, positions: Tensor, slots: Tensor, seen: Tensor
    ) -> None:
        self._state, self._positions, self._slots, self._seen = state, positions, slots, seen
        self._cos = stack.cos[positions].repeat(1, 2)[:, None]
        self._sin = stack.sin[positions].repeat(1, 2)[:, None]

    def __call__(self, layer: int, qkv: Tensor) -> Tensor:
        keys, values = self._state.keys[layer], self._state.values[layer]
        kv_heads, size = keys.shape[1], keys.shape[3]
        heads = qkv.unflatten(1, (-1, size))
        turned, v = heads[:, :-kv_heads], heads[:, -kv_heads:]
        turned = turned * self._cos + rotate_half(turned) * self._sin
        q, k = turned[:, :-kv_heads], turned[:, -kv_heads:]
        keys[self._slots, :, self._positions] = k
        values[self._slots, :, self._positions] = v
        q, k, v = (part.transpose(0, 1)[None] for part in (q, k, v))
        mixed = F.scaled_dot_product_attention(q, k, v, attn_mask=self._seen, enable_gqa=True)
        return mixed[0].transpose(0, 1).flatten(1).contiguous()
