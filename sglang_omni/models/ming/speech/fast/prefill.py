"""Prefill: the prompts of several requests, packed into one pass over the backbone.

The plain form is `TalkerSlots.prefill`. All rows of a prompt but the last go into the cache of
its slot. The last row is the input of the first decode step, which is thus a step like any other.
"""

from collections import OrderedDict
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import torch
import torch.nn.functional as F
from torch import Tensor

from sglang_omni.models.ming.speech.fast.layers import run_decoder_layers
from sglang_omni.models.ming.speech.fast.ops import Ops
from sglang_omni.models.ming.speech.fast.packed import DecoderStack
from sglang_omni.models.ming.speech.fast.state import SlotState
from sglang_omni.models.ming.speech.prompt import PromptIds, build_initial_history
from sglang_omni.models.ming.speech.qwen2 import rotate_half
from sglang_omni.models.ming.speech.slots import to_int64
from sglang_omni.models.ming.speech.talker import Talker
from sglang_omni.models.ming.speech.voices import VoicePrompt
from sglang_omni.models.speech import Admission

MAX_PROMPTS = 16
"""Maximum number of prompts in one pass."""
PROMPT_FIELDS = 8
"""Number of integers that describe a prompt; see `PackedPrompts`."""
MAX_CLONES = 64
"""Number of cloned voices in the table; more than the prompts of one pass."""
ROWS_PER_CLONE = 97
"""Rows of a cloned voice: 96 patches, which cover over 30 s, and the speaker vector."""
NO_PROMPT = -1


@dataclass(frozen=True)
class VoiceLocation:
    """Location of a voice in the table.

    `number` is its row of `history`. `first` is its first row of `rows`, which holds the speaker
    vector; the rows of its patches follow.
    """

    number: int
    first: int


VoiceKey = tuple[str, str | None]


class VoiceTable:
    """Embeddings and histories of the voices on the device, in rows that a prompt can refer to.

    A prompt token `t` >= `vocabulary` stands for row `t - vocabulary` of `rows`. Presets stay in
    the table; a new cloned voice replaces the least recently used one, which the prompts of earlier
    passes no longer need.
    """

    def __init__(
        self, talker: Talker, voices: dict[str, VoicePrompt], clones: int = MAX_CLONES
    ) -> None:
        self._talker, like = talker, talker.stop_head.weight
        self.vocabulary = talker.model.embed_tokens.num_embeddings
        preset_rows = sum(1 + len(voice.embeds) for voice in voices.values())
        self.rows = like.new_zeros(
            preset_rows + clones * ROWS_PER_CLONE, talker.config.llm.hidden_size
        )
        past, latent = talker.config.history_patch_size, talker.config.latent_dim
        self.history = like.new_zeros(len(voices) + clones, past, latent)
        self._presets: dict[VoiceKey, VoiceLocation] = {}
        first = 0
        for number, voice in enumerate(voices.values()):
            self._presets[_voice_key(voice)] = self._fill(voice, VoiceLocation(number, first))
            first += 1 + len(voice.embeds)
        self._clones: OrderedDict[VoiceKey, VoiceLocation] = OrderedDict()
        self._free = [
            VoiceLocation(len(voices) + n, preset_rows + n * ROWS_PER_CLONE) for n in range(clones)
        ]

    def locate(self, voice: VoicePrompt) -> VoiceLocation:
        """Return the location of a voice; add the voice on the current stream if it is missing."""
        key = _voice_key(voice)
        if key in self._presets:
            return self._presets[key]
        if key not in self._clones:
            location = self._free.pop() if self._free else self._clones.popitem(last=False)[1]
            self._clones[key] = self._fill(voice, location)
        self._clones.move_to_end(key)
        return self._clones[key]

    def build_tokens(self, prompt: PromptIds, location: VoiceLocation) -> np.ndarray:
        """Return the prompt tokens, int64 [length], with references to the rows of the voice."""
        ids, first = np.array(prompt.ids), self.vocabulary + location.first
        ids[list(prompt.speaker_rows)] = first
        audio = slice(prompt.audio_row, prompt.audio_row + prompt.audio_patches)
        ids[audio] = np.arange(first + 1, first + 1 + prompt.audio_patches)
        return ids

    def _fill(self, voice: VoicePrompt, location: VoiceLocation) -> VoiceLocation:
        rows = self.rows[location.first :]
        if voice.speaker is not None:
            rows[0] = voice.speaker
        rows[1 : 1 + len(voice.embeds)] = voice.embeds
        self.history[location.number] = build_initial_history(self._talker, voice.latents)
        return location


def _voice_key(voice: VoicePrompt) -> VoiceKey:
    return voice.name, voice.text


@dataclass(frozen=True)
class PackedPrompts:
    """Integers of one pass: `tokens` [4, size] and `prompts` [PROMPT_FIELDS, MAX_PROMPTS], int64.

    Rows of `tokens`: id, position, slot, prompt number. Rows of `prompts`: last id, slot, cached
    length, voice, seed, segment, and the float32 bits of cfg and noise scale. Unused columns belong
    to the spare slot.
    """

    tokens: np.ndarray
    prompts: np.ndarray


def pack_prompts(
    admissions: Sequence[Admission], voices: VoiceTable, size: int, spare: int
) -> PackedPrompts:
    """Pack at most `MAX_PROMPTS` prompts, with together at most `size` plus one token each."""
    tokens = np.zeros((4, size), np.int64)
    tokens[2:] = [[spare], [NO_PROMPT]]
    prompts = np.zeros((PROMPT_FIELDS, MAX_PROMPTS), np.int64)
    prompts[1] = spare
    start = 0
    for number, admission in enumerate(admissions):
        location = voices.locate(admission.input.voice)
        ids = voices.build_tokens(admission.input.prompt, location)
        end = start + len(ids) - 1
        slot = np.full(end - start, admission.slot)
        tokens[:, start:end] = ids[:-1], np.arange(end - start), slot, np.full_like(slot, number)
        counters = to_int64(admission.seed), to_int64(admission.segment)
        sampling = (
            _float32_bits(admission.input.sampling.cfg),
            _float32_bits(admission.input.sampling.noise_scale),
        )
        fields = ids[-1], admission.slot, end - start, location.number
        prompts[:, number] = *fields, *counters, *sampling
        start = end
    return PackedPrompts(tokens, prompts)


def _float32_bits(number: float) -> int:
    """Return the bits of a float32 number as an integer."""
    return int(np.float32(number).view(np.int32))


def count_fitting(admissions: Sequence[Admission], size: int) -> int:
    """Return how many of the first admissions fit one pass of `size` tokens."""
    total = count = 0
    for admission in admissions[:MAX_PROMPTS]:
        total += len(admission.input.prompt.ids) - 1
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
        """Start requests in their slots from the integers of `PackedPrompts` on the device."""
        ids, positions, slots, prompt_numbers = tokens.unbind()
        mask = (prompt_numbers[:, None] == prompt_numbers[None]) & (
            positions[:, None] >= positions[None]
        )
        x = self._embed(ids)
        attend = PackedAttention(self._state, self._stack, positions, slots, mask)
        run_decoder_layers(self._stack, x, attend, ops)
        self._init_slots(*prompts.unbind())

    def _init_slots(
        self,
        ids: Tensor,
        slots: Tensor,
        lengths: Tensor,
        voices: Tensor,
        seed: Tensor,
        segment: Tensor,
        cfg: Tensor,
        noise_scale: Tensor,
    ) -> None:
        state = self._state
        state.next_embed[slots] = self._embed(ids)
        history = self._voices.history[voices]
        state.ring[slots, : state.past] = history.unflatten(1, (state.past, -1))
        state.lengths[slots], state.patches[slots] = lengths, torch.zeros_like(lengths)
        state.seeds[slots], state.segments[slots] = seed, segment
        state.cfg[slots] = cfg.to(torch.int32).view(torch.float32)
        state.noise_scale[slots] = noise_scale.to(torch.int32).view(torch.float32)

    def _embed(self, ids: Tensor) -> Tensor:
        """Return embeddings [n, hidden] of token ids and of references to voice rows."""
        table, size = self._talker.model.embed_tokens.weight, self._voices.vocabulary
        token_embeds = table[ids.clamp_max(size - 1)]
        voice_embeds = self._voices.rows[(ids - size).clamp_min(0)]
        return torch.where((ids < size)[:, None], token_embeds, voice_embeds)


class PackedAttention:
    """Causal attention within each packed prompt; stores keys and values in the slots."""

    def __init__(
        self, state: SlotState, stack: DecoderStack, positions: Tensor, slots: Tensor, mask: Tensor
    ) -> None:
        self._state, self._positions, self._slots, self._mask = state, positions, slots, mask
        self._cos = stack.cos[positions].repeat(1, 2)[:, None]
        self._sin = stack.sin[positions].repeat(1, 2)[:, None]

    def __call__(self, layer: int, qkv: Tensor) -> Tensor:
        """Return [tokens, heads * head_dim] of a layer's projections qkv [tokens, width]."""
        keys, values = self._state.keys[layer], self._state.values[layer]
        kv_heads, head_dim = keys.shape[1], keys.shape[3]
        heads = qkv.unflatten(1, (-1, head_dim))
        rotated, v = heads[:, :-kv_heads], heads[:, -kv_heads:]
        rotated = rotated * self._cos + rotate_half(rotated) * self._sin
        q, k = rotated[:, :-kv_heads], rotated[:, -kv_heads:]
        keys[self._slots, :, self._positions] = k
        values[self._slots, :, self._positions] = v
        q, k, v = (part.transpose(0, 1)[None] for part in (q, k, v))
        attended = F.scaled_dot_product_attention(q, k, v, attn_mask=self._mask, enable_gqa=True)
        return attended[0].transpose(0, 1).flatten(1).contiguous()
