"""Training batches of the talker: many utterances, each after a prompt as the product builds it.

Everything here is numbers on the host; the device gathers latents by patch number. Batches have few
shapes, because every shape is a CUDA graph.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from random import Random

import numpy as np

from cookbook.ming_mini.utterances import PATCH, Utterance, UtteranceTables
from sglang_omni.models.ming.speech.prompt import (
    ASSISTANT,
    AUDIO,
    AUDIO_PATCH,
    IM_END,
    SPEECH_TASK,
    SYSTEM,
    TEXT_INPUT,
    USER,
    PromptTokenizer,
)

HISTORY = 8
"""Patches of history."""
NO_PROMPT, HISTORY_ONLY = 0.06, 0.03
"""Shares of utterances without any voice prompt, and with one that only primes the history."""
RECORDED = 0.35
"""The share of voice prompts that are recordings, of speakers that have any."""
LADDER = (24, 32, 40, 48, 64, 80, 96, 128, 192, 256)
"""Latents that utterances are padded to; longer ones are left out."""
PROMPT_LATENTS = 60
PROMPT_TEXT, TEXT_A_LATENT = 128, 1.5
"""Rows of the backbone there is room for: frame, the prompt's text and an instruction, and text to
say."""


@dataclass(frozen=True)
class Frame:
    """The fixed ids around the texts of a prompt, the id that ends a part, and a patch's row's."""

    before: tuple[int, ...]
    after: tuple[int, ...]
    patch: int
    end: int

    def after_text(self, instruction: np.ndarray) -> tuple[int, ...]:
        """Return the ids after the text: an instruction comes between `assistant` and audio."""
        if len(instruction) == 0:
            return self.after
        return (*self.after[:-1], *instruction.tolist(), self.end, self.after[-1])


def prompt_frame(tokenizer: PromptTokenizer) -> Frame:
    """Return the pieces of `PromptTokenizer.assemble` for speech without a speaker vector."""
    before, after = (
        tuple(token for piece in pieces for token in tokenizer.encode(piece))
        for pieces in ((SYSTEM, USER, SPEECH_TASK, TEXT_INPUT), (IM_END + "\n", ASSISTANT, AUDIO))
    )
    (patch,), (end,) = tokenizer.encode(AUDIO_PATCH), tokenizer.encode(IM_END)
    return Frame(before, after, patch, end)


@dataclass(frozen=True)
class Batch:
    """B utterances as arrays of int64; unused places are 0, which is also the absent patch.

    `ids` [B, L] are the rows of the backbone. `audio` [B, A] are the patches whose embeddings
    replace the rows from `audio_row` [B] on: the prompt's, then the utterance's own. `history` [B,
    8] are the patches before the first, `target` [B, P] the utterance's, of which `patches` [B]
    exist. `state` [B] is the row whose output makes patch 0. `text` [B, 2] is the span of the
    text's rows, `seconds` [B] the duration. `chosen` [C] are indices into the flattened `target` of
    existing patches, which the flow learns.
    """

    ids: np.ndarray
    audio: np.ndarray
    audio_row: np.ndarray
    audio_count: np.ndarray
    history: np.ndarray
    target: np.ndarray
    patches: np.ndarray
    state: np.ndarray
    text: np.ndarray
    seconds: np.ndarray
    chosen: np.ndarray


@dataclass(frozen=True)
class Shape:
    """The padded sizes of B utterances: rows, patches among them, and patches to make."""

    rows: int
    audio: int
    patches: int


def shape_of(latents: int, patch: int = PATCH) -> Shape:
    """Return the shape of batches of utterances of at most so many latents, `patch` in a patch."""
    patches, prompt = latents // patch, PROMPT_LATENTS // patch
    text = PROMPT_TEXT + int(TEXT_A_LATENT * latents)
    return Shape(text + prompt + patches, prompt + patches - 1, patches)


@dataclass(frozen=True)
class Row:
    """One utterance of a batch, before padding."""

    ids: np.ndarray
    audio: np.ndarray
    audio_row: int
    history: np.ndarray
    target: np.ndarray
    state: int
    text: tuple[int, int]
    seconds: float

    def fits(self, shape: Shape) -> bool:
        """Return whether it can be padded to a shape."""
        sizes = (len(self.ids), len(self.audio), len(self.target))
        return all(size <= most for size, most in zip(sizes, vars(shape).values(), strict=True))


def row(frame: Frame, said: Utterance, prompt: Utterance | None, in_text: bool) -> Row:
    """Build the row of one utterance, with or without a voice prompt.

    Without `in_text` the prompt is only part of the history.
    """
    numbers = np.empty(0, dtype=np.int64) if prompt is None else _numbers(prompt)
    shown = numbers if in_text else numbers[:0]
    asked = prompt.tokens if prompt is not None and in_text else said.tokens[:0]
    text = len(frame.before) + len(asked)
    after = frame.after_text(said.instruction)
    audio_row = text + len(said.tokens) + len(after)
    target = _numbers(said)
    voiced = np.full(len(shown) + len(target) - 1, frame.patch)
    history = np.zeros(HISTORY, dtype=np.int64)
    recent = numbers[-HISTORY:]
    history[HISTORY - len(recent) :] = recent
    return Row(
        ids=np.concatenate((frame.before, asked, said.tokens, after, voiced)),
        audio=np.concatenate((shown, target[:-1])),
        audio_row=audio_row,
        history=history,
        target=target,
        state=audio_row + len(shown) - 1,
        text=(text, text + len(said.tokens)),
        seconds=said.seconds,
    )


def _numbers(spoken: Utterance) -> np.ndarray:
    """Return the numbers of its patches."""
    return np.arange(spoken.first, spoken.first + spoken.patches)


def stack(rows: Sequence[Row], shape: Shape, chosen: int, rng: np.random.Generator) -> Batch:
    """Stack rows, padded to a shape, with `chosen` patches for the flow."""
    patches = np.array([len(one.target) for one in rows])
    return Batch(
        ids=_padded([one.ids for one in rows], shape.rows),
        audio=_padded([one.audio for one in rows], shape.audio),
        audio_row=np.array([one.audio_row for one in rows]),
        audio_count=np.array([len(one.audio) for one in rows]),
        history=np.array([one.history for one in rows]),
        target=_padded([one.target for one in rows], shape.patches),
        patches=patches,
        state=np.array([one.state for one in rows]),
        text=np.array([one.text for one in rows]),
        seconds=np.array([one.seconds for one in rows]),
        chosen=_choose(np.arange(shape.patches) < patches[:, None], chosen, rng),
    )


def _padded(lists: Sequence[np.ndarray], length: int) -> np.ndarray:
    out = np.zeros((len(lists), length), dtype=np.int64)
    for target, values in zip(out, lists, strict=True):
        target[: len(values)] = values
    return out


def _choose(exists: np.ndarray, count: int, rng: np.random.Generator) -> np.ndarray:
    """Choose `count` existing places in random order; all of them once before one repeats."""
    places = rng.permutation(np.flatnonzero(exists))
    return np.resize(places, count)


class Batcher:
    """Draw batches of about equally long utterances, with at most `patches` patches in each."""

    def __init__(self, tables: UtteranceTables, frame: Frame, patches: int, seed: int) -> None:
        self._tables, self._frame, self._patches = tables, frame, patches
        self._rng, self._places = Random(seed), np.random.default_rng(seed)
        self._sorted = 0
        self._pools: dict[int, list[Utterance]] = {}
        self._weights: list[int] = []

    def draw(self) -> Batch:
        """Draw one batch; lengths are as likely as their share of all patches."""
        if self._sorted != self._tables.count:
            self._sort()
        (most,) = self._rng.choices(list(self._pools), self._weights)
        shape = shape_of(most, self._tables.patch)
        count = max(1, self._patches // shape.patches)
        rows = [self._draw_row(self._pools[most], shape) for _ in range(count)]
        return stack(rows, shape, self._patches, self._places)

    def _sort(self) -> None:
        """Group utterances by the step of the ladder that they are padded to."""
        self._sorted, self._pools = self._tables.count, {}
        for least, most in zip((0, *LADDER), LADDER, strict=False):
            for length, pool in self._tables.by_patches.items():
                if least < length * self._tables.patch <= most:
                    self._pools.setdefault(most, []).extend(pool)
        self._weights = [sum(one.patches for one in pool) for pool in self._pools.values()]

    def _draw_row(self, pool: Sequence[Utterance], shape: Shape) -> Row:
        """Draw an utterance and a prompt that fit the shape, as nearly all do."""
        while True:
            drawn = self._behind_prompt(self._rng.choice(pool))
            if drawn.fits(shape):
                return drawn

    def _behind_prompt(self, said: Utterance) -> Row:
        choices = self._prompts_of(said.speaker)
        draw = self._rng.random()
        if not choices or draw < NO_PROMPT:
            return row(self._frame, said, None, in_text=False)
        prompt = self._rng.choice(choices)
        return row(self._frame, said, prompt, in_text=draw >= NO_PROMPT + HISTORY_ONLY)

    def _prompts_of(self, speaker: int) -> Sequence[Utterance]:
        """Return what to draw a voice prompt from: a speaker's recordings, or the clips."""
        recordings = self._tables.recordings.get(speaker, ())
        if recordings and self._rng.random() < RECORDED:
            return recordings
        return self._tables.prompts.get(speaker, ())
