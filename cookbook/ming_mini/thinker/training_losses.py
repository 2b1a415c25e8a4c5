"""Run batches through the model.

The results are the answers' loss, whether they are right, and the encoders' losses.
"""

from dataclasses import dataclass
from functools import lru_cache
from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from cookbook.ming_mini.compilation import EAGER, Regions, Runner, run_eager
from cookbook.ming_mini.thinker.encoders import (
    encode_clips,
    encode_films,
    encode_images,
    num_conv_outputs,
    zero_padding,
)
from cookbook.ming_mini.thinker.forward import RouterLoad, run_thinker
from cookbook.ming_mini.thinker.library import Batch, Library
from cookbook.ming_mini.thinker.media_store import Size, to_device
from cookbook.ming_mini.thinker.model import Heads, TrainableThinker
from cookbook.ming_mini.thinker.picture_labels import MAX_BEFORE, cell_tokens
from cookbook.ming_mini.thinker.shards import SLOTS
from cookbook.ming_mini.thinker.step_batch import StepBatch, join_batches
from sglang_omni.models.ming.encoders.audio import TOWER_STRIDE

PIXEL_NOISE = 6.0
"""Deviation of the noise on pixels in training, of 255."""
BANDS, BAND_SHARE = 2, 0.12
"""Bands of mel bins that are masked in training, and of the bins, what each has at most."""
SPANS, SPAN_FRAMES, SPAN_SHARE = 2, 16, 0.06
"""Spans of time that are masked; the most frames of each, and the most of its clip."""


@dataclass(frozen=True)
class BatchOutcome:
    """The outcome of a batch.

    `loss` is the weighted mean over the answers' tokens. `right` [B] is whether greedy decoding
    would give exactly the answer. `sense` is the encoder's own loss, 0 for text.
    """

    loss: Tensor
    right: Tensor
    sense: Tensor
    loads: list[RouterLoad]


@dataclass(frozen=True)
class BatchLosses:
    """The losses of a batch.

    They are the weighted mean over its answers' tokens, and its encoder's own, 0 for text.
    """

    answers: Tensor
    sense: Tensor


@dataclass(frozen=True)
class ThinkerStates:
    """The states [N, hidden] that must predict the answers.

    It also has the encoders' losses, and the routers' loads.
    """

    states: Tensor
    senses: list[Tensor]
    loads: list[RouterLoad]


def evaluate_batch(model: TrainableThinker, batch: Batch, library: Library) -> BatchOutcome:
    """Run one batch and judge its answers."""
    device = model.thinker.lm_head.weight.device
    step = join_batches([batch]).to(device)
    thought = run_step(model, step, library)
    logits = model.thinker.lm_head(thought.states).float()
    wrong = (logits.argmax(-1) != step.answers).float()
    misses = torch.zeros(len(batch.ids), device=device)
    misses = misses.index_add(0, to_device(batch.owners, device), wrong)
    loss = (F.cross_entropy(logits, step.answers, reduction="none") * step.weights).sum()
    return BatchOutcome(loss, misses == 0, thought.senses[0], thought.loads)


def compute_losses(
    model: TrainableThinker,
    step: StepBatch,
    library: Library,
    noise: torch.Generator | None = None,
    regions: Regions = EAGER,
) -> tuple[list[BatchLosses], list[RouterLoad]]:
    """Return the losses of every batch of a step.

    With `noise`, media are augmented as in training.
    """
    thought = run_step(model, step, library, noise, regions)
    missed = regions.varied(_answer_losses, model.thinker.lm_head, thought.states, step.answers)
    counts = [len(one.answers) for one in step.batches]
    means = [one.sum() for one in torch.split_with_sizes(missed * step.weights, counts)]
    return [BatchLosses(*pair) for pair in zip(means, thought.senses, strict=True)], thought.loads


def _answer_losses(head: nn.Linear, states: Tensor, answers: Tensor) -> Tensor:
    return F.cross_entropy(head(states).float(), answers, reduction="none")


def run_step(
    model: TrainableThinker,
    step: StepBatch,
    library: Library,
    noise: torch.Generator | None = None,
    regions: Regions = EAGER,
) -> ThinkerStates:
    """Run a step up to the states that predict the answers."""
    x = model.thinker.model.word_embeddings(step.ids)
    senses = []
    for batch, places, sources in zip(step.batches, step.places, step.sources, strict=True):
        if batch.kind == "text":
            senses.append(x.new_zeros(()))
            continue
        features, sense = encode_media(model, batch, library, noise, regions.varied)
        # Row numbers instead of an index: a sum over different rows needs no sort.
        x = x.index_copy(0, places, features.flatten(0, 1).index_select(0, sources).to(x.dtype))
        senses.append(sense)
    hidden, loads = run_thinker(model.thinker, x, step.rows, regions.fixed)
    return ThinkerStates(hidden.index_select(0, step.before), senses, loads)


def encode_media(
    model: TrainableThinker,
    batch: Batch,
    library: Library,
    noise: torch.Generator | None,
    run: Runner = run_eager,
) -> tuple[Tensor, Tensor]:
    """Return features [B, rows, hidden] of a batch's media and the loss of their head."""
    if batch.kind == "picture":
        index = to_device(batch.media, library.pictures[batch.size].pixels.rows.device)
        return encode_pictures(model, library, batch.size, index, noise, run)
    if batch.kind == "film":
        frames = library.films[batch.size].pixels.rows
        chosen = frames.index_select(0, to_device(batch.media, frames.device)).float()
        return encode_films(model.vision, _with_noise(chosen, noise), run), chosen.new_zeros(())
    clips = library.clips
    mel, lengths = clips.mels(batch.media)
    mel = mel.float() if noise is None else mask_spectrograms(mel.float(), lengths, noise)
    features, states = encode_clips(model.audio, mel, lengths, run)
    log_odds = model.heads.letters(states).float().log_softmax(-1).transpose(0, 1)
    letters, spelled = clips.transcripts(batch.media)
    # Lengths from the host: otherwise the loss would fetch them from the device, and wait.
    heard: Any = tuple(num_conv_outputs(clips.lengths(batch.media), TOWER_STRIDE).tolist())
    sizes: Any = tuple(spelled.tolist())
    return features, F.ctc_loss(log_odds, letters, heard, sizes, zero_infinity=True)


def practise_vision(
    model: TrainableThinker,
    library: Library,
    size: Size,
    count: int,
    noise: torch.Generator,
    run: Runner = run_eager,
) -> tuple[Tensor, Tensor]:
    """Train the vision encoder alone on `count` pictures of a size.

    Returns its loss, and the share of the things in them that it names right. This costs a fraction
    of a pass through the thinker.
    """
    marks = library.pictures[size].marks
    index = torch.randint(marks.length, (count,), generator=noise, device=noise.device)
    features, loss = encode_pictures(model, library, size, index, noise, run)
    things = marks.rows.index_select(0, index)[..., :SLOTS].long()
    guesses = model.heads.read_marks(features.detach())[:SLOTS]
    named = torch.stack([guess.argmax(-1) for guess in guesses], dim=-1)
    return loss, _mean((named == things).float(), (things > 0).float())


def encode_pictures(
    model: TrainableThinker,
    library: Library,
    size: Size,
    index: Tensor,
    noise: torch.Generator | None,
    run: Runner,
) -> tuple[Tensor, Tensor]:
    """Return features [B, rows, hidden] of pictures, and the loss of the heads.

    `index` [B] has the numbers of the pictures of one size.
    """
    store = library.pictures[size]
    pixels = store.pixels.rows.index_select(0, index).float()
    marks = store.marks.rows.index_select(0, index).long()
    features = encode_images(model.vision, _with_noise(pixels, noise), run)
    unread = mark_loss(model.heads, features, marks)
    lost = position_loss(model.heads, features, size)
    return features, unread + lost + count_loss(model.heads, features, marks)


def _with_noise(pixels: Tensor, noise: torch.Generator | None) -> Tensor:
    if noise is None:
        return pixels
    return pixels + PIXEL_NOISE * torch.randn(pixels.shape, generator=noise, device=pixels.device)


def mark_loss(heads: Heads, features: Tensor, marks: Tensor) -> Tensor:
    """Return the loss of features [n, tokens, hidden] against marks [n, tokens, slots].

    Tokens with something count as much as empty ones. Most of a picture is empty, and in a plain
    mean its few letters would hardly count.
    """
    guesses = heads.read_marks(features)
    missed = torch.stack(
        [
            F.cross_entropy(guess.flatten(0, 1).float(), those.flatten(), reduction="none")
            for guess, those in zip(guesses, marks.unbind(-1), strict=True)
        ]
    )
    shown = (marks > 0).flatten(0, 1).T.float()
    return _mean(missed, shown) + _mean(missed, 1.0 - shown)


def _mean(values: Tensor, weights: Tensor) -> Tensor:
    return (values * weights).sum() / weights.sum().clamp(min=1.0)


def position_loss(heads: Heads, features: Tensor, size: Size) -> Tensor:
    """Return the loss of the positions that features predict.

    Features are [n, tokens, hidden], of pictures of one size.
    """
    cells = _cells(size, features.device).repeat(len(features), 1)
    return F.cross_entropy(heads.read_cells(features).float().flatten(0, 2), cells.flatten())


def count_loss(heads: Heads, features: Tensor, marks: Tensor) -> Tensor:
    """Return the loss of the predicted number of things before each token.

    Only tokens with something count. `features` are [n, tokens, hidden], `marks` [n, tokens,
    slots]. Reading a line aloud needs the position of each letter in the line.
    """
    things = (marks[..., :SLOTS] > 0).sum(-1)
    before = (things.cumsum(1) - things).clamp(max=MAX_BEFORE)
    guesses = heads.read_turns(features).float().flatten(0, 1)
    missed = F.cross_entropy(guesses, before.flatten(), reduction="none")
    return _mean(missed, (things > 0).flatten().float())


@lru_cache
def _cells(size: Size, device: torch.device) -> Tensor:
    return torch.from_numpy(cell_tokens(size)).to(device)


def mask_spectrograms(mel: Tensor, lengths: Tensor, noise: torch.Generator) -> Tensor:
    """Return log-mels [n, frames, bins] of which bands of bins and spans of frames are masked.

    They are set to the mean over `lengths` [n], for each clip (SpecAugment, Park et al. 2019).
    """
    bins = mel.shape[-1]
    ends = torch.full_like(lengths, bins)
    bands = _draw_spans(BANDS, ends, ends * BAND_SHARE, bins, noise)
    longest = (lengths * SPAN_SHARE).clamp(max=SPAN_FRAMES)
    spans = _draw_spans(SPANS, lengths, longest, mel.shape[1], noise)
    mean = zero_padding(mel, lengths).sum((1, 2)) / (lengths * bins)
    return torch.where(bands[:, None] | spans[..., None], mean[:, None, None], mel)


def _draw_spans(
    count: int, ends: Tensor, longest: Tensor, size: int, noise: torch.Generator
) -> Tensor:
    """Return which of `size` places lie in random spans before `ends`; bool [n, size]."""
    draws = torch.rand(2, count, len(ends), 1, generator=noise, device=ends.device)
    width = draws[0] * longest[:, None]
    start = draws[1] * (ends[:, None] - width)
    place = torch.arange(size, device=ends.device)
    return ((place >= start) & (place < start + width)).any(0)
