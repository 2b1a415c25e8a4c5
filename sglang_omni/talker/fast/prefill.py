"""Prompts of several requests, packed one after the other into one pass over the backbone.

The plain form is `TalkerSlots.prefill`. All rows of a prompt but the last go into its slot's cache;
the last is the first step's input, so that the first step is a step like any other.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import torch
import torch.nn.functional as F
from torch import Tensor

from sglang_omni.models.ming.qwen2 import rotate_half
from sglang_omni.models.ming.talker import Talker
from sglang_omni.models.ming.talker_prompt import PromptIds, initial_history
from sglang_omni.models.ming.voices import VoicePrompt
from sglang_omni.talker.executor import Admission
from sglang_omni.talker.fast.layers import run_decoder_layers
from sglang_omni.talker.fast.ops import Ops
from sglang_omni.talker.fast.packed import DecoderStack
from sglang_omni.talker.fast.state import SlotState
from sglang_omni.talker.slots import as_int64

PROMPTS = 16
"""The most prompts of one pass."""
NOBODY = -1


class VoiceTable:
    """The voices' embeddings and histories on the device, in rows that a prompt can point at.

    A prompt token at or beyond `vocabulary` stands for row token - vocabulary of `rows`.
    """

    def __init__(self, talker: Talker, voices: dict[str, VoicePrompt]) -> None:
        rows: list[Tensor] = []
        self.vocabulary = talker.model.embed_tokens.num_embeddings
        self._speaker: dict[str, int] = {}
        self._audio: dict[str, int] = {}
        self._number = {name: number for number, name in enumerate(voices)}
        for name, voice in voices.items():
            self._audio[name] = self.vocabulary + sum(map(len, rows))
            rows.append(voice.embeds)
            if voice.speaker is not None:
                self._speaker[name] = self.vocabulary + sum(map(len, rows))
                rows.append(voice.speaker[None])
        self.rows = torch.cat(rows).to(talker.stop_head.weight)
        self.history = torch.stack([initial_history(talker, v.latents) for v in voices.values()])

    def tokens(self, prompt: PromptIds, voice: str) -> np.ndarray:
        """The prompt's tokens, int64 [length], those that a voice replaces pointing at its rows."""
        ids = np.array(prompt.ids)
        if prompt.speaker_rows and voice in self._speaker:
            ids[list(prompt.speaker_rows)] = self._speaker[voice]
        first = self._audio[voice]
        audio = slice(prompt.audio_row, prompt.audio_row + prompt.audio_patches)
        ids[audio] = np.arange(first, first + prompt.audio_patches)
        return ids

    def number(self, voice: str) -> int:
        """The voice's row of `history`."""
        return self._number[voice]


@dataclass(frozen=True)
class Packed:
    """One pass's integers: `tokens` [4, size] and `prompts` [6, PROMPTS], int64.

    Rows of `tokens`: id, position, slot, prompt number. Rows of `prompts`: last id, slot, cached
    length, voice, seed, segment. What is unused belongs to the spare slot.
    """

    tokens: np.ndarray
    prompts: np.ndarray


def pack(admissions: Sequence[Admission], voices: VoiceTable, size: int, spare: int) -> Packed:
    """Lay out at most `PROMPTS` prompts, together at most `size` + one token each."""
    tokens = np.zeros((4, size), np.int64)
    tokens[2:] = [[spare], [NOBODY]]
    prompts = np.zeros((6, PROMPTS), np.int64)
    prompts[1] = spare
    start = 0
    for number, one in enumerate(admissions):
        ids = voices.tokens(one.prompt, one.voice)
        end = start + len(ids) - 1
        slot = np.full(end - start, one.slot)
        tokens[:, start:end] = ids[:-1], np.arange(end - start), slot, np.full_like(slot, number)
        voice, seed, segment = voices.number(one.voice), as_int64(one.seed), as_int64(one.segment)
        prompts[:, number] = ids[-1], one.slot, end - start, voice, seed, segment
        start = end
    return Packed(tokens, prompts)


def take(admissions: Sequence[Admission], size: int) -> int:
    """How many of the first admissions one pass of `size` tokens holds."""
    total = count = 0
    for one in admissions[:PROMPTS]:
        total += len(one.prompt.ids) - 1
        if total > size:
            break
        count += 1
    return count


class Prefill:
    """One pass over packed prompts; a fixed sequence of kernels for each size."""

    def __init__(
        self, talker: Talker, stack: DecoderStack, state: SlotState, voices: VoiceTable
    ) -> None:
        self._talker, self._stack, self._state, self._voices = talker, stack, state, voices

    def run(self, tokens: Tensor, prompts: Tensor, ops: Ops) -> None:
        """Start requests in their slots from `Packed` integers on the device."""
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
    ) -> None:
        state = self._state
        state.next_embed[slots] = self._embed(ids)
        history = self._voices.history[voices]
        state.ring[slots, : state.past] = history.unflatten(1, (state.past, -1))
        state.lengths[slots], state.patches[slots] = lengths, torch.zeros_like(lengths)
        state.seeds[slots], state.segments[slots] = seed, part

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
