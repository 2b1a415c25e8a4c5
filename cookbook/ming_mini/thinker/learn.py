"""Batches through the model: the answers' loss, whether they are right, and the encoders' own."""

from dataclasses import dataclass
from functools import lru_cache

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from cookbook.ming_mini.thinker.forward import Load, think
from cookbook.ming_mini.thinker.joined import Joined, join
from cookbook.ming_mini.thinker.library import Batch, Library
from cookbook.ming_mini.thinker.model import Heads, Thinking
from cookbook.ming_mini.thinker.regions import PLAIN, Regions, Run, plainly
from cookbook.ming_mini.thinker.seeing import MOST_BEFORE, cell_tokens
from cookbook.ming_mini.thinker.senses import cut, hear, rows_after, see
from cookbook.ming_mini.thinker.shards import SLOTS
from cookbook.ming_mini.thinker.store import Size, put
from sglang_omni.models.ming.encoders.audio import TOWER_STRIDE

PIXEL_NOISE = 6.0
"""Deviation of the noise on pixels in training, of 255."""
BAND_SHARE = 0.15
"""Of the mel bins, at most masked in training."""


@dataclass(frozen=True)
class Learnt:
    """`loss` is the weighted mean over the answers' tokens, and `right` [B] tells whether greedy
    decoding would print exactly the answer. `sense` is the encoder's own loss, 0 for text."""

    loss: Tensor
    right: Tensor
    sense: Tensor
    loads: list[Load]


@dataclass(frozen=True)
class Losses:
    """Of one batch: the weighted mean over its answers' tokens, and its encoder's own, 0 for
    text."""

    answers: Tensor
    sense: Tensor


@dataclass(frozen=True)
class Thought:
    """The states [N, hidden] that must predict the answers, the encoders' losses for each batch,
    and the routers' loads."""

    states: Tensor
    senses: list[Tensor]
    loads: list[Load]


def study(model: Thinking, batch: Batch, library: Library) -> Learnt:
    """Run one batch and judge its answers."""
    device = model.thinker.lm_head.weight.device
    step = join([batch]).to(device)
    thought = ponder(model, step, library)
    logits = model.thinker.lm_head(thought.states).float()
    wrong = (logits.argmax(-1) != step.answers).float()
    misses = torch.zeros(len(batch.ids), device=device)
    misses = misses.index_add(0, put(batch.owners, device), wrong)
    loss = (F.cross_entropy(logits, step.answers, reduction="none") * step.weights).sum()
    return Learnt(loss, misses == 0, thought.senses[0], thought.loads)


def learn(
    model: Thinking,
    step: Joined,
    library: Library,
    noise: torch.Generator | None = None,
    regions: Regions = PLAIN,
) -> tuple[list[Losses], list[Load]]:
    """Losses of every batch of a step; with `noise`, media are varied as in training."""
    thought = ponder(model, step, library, noise, regions)
    missed = regions.varied(_missed, model.thinker.lm_head, thought.states, step.answers)
    counts = [len(one.answers) for one in step.batches]
    means = [one.sum() for one in torch.split_with_sizes(missed * step.weights, counts)]
    return [Losses(*pair) for pair in zip(means, thought.senses, strict=True)], thought.loads


def _missed(head: nn.Linear, states: Tensor, answers: Tensor) -> Tensor:
    return F.cross_entropy(head(states).float(), answers, reduction="none")


def ponder(
    model: Thinking,
    step: Joined,
    library: Library,
    noise: torch.Generator | None = None,
    regions: Regions = PLAIN,
) -> Thought:
    """Run a step up to the answers."""
    x = model.thinker.model.word_embeddings(step.ids)
    senses = []
    for batch, places, sources in zip(step.batches, step.places, step.sources, strict=True):
        if batch.kind == "text":
            senses.append(x.new_zeros(()))
            continue
        features, sense = perceive(model, batch, library, noise, regions.varied)
        # By number, never by index: a sum over rows that are all different is not sorted first.
        x = x.index_copy(0, places, features.flatten(0, 1).index_select(0, sources).to(x.dtype))
        senses.append(sense)
    hidden, loads = think(model.thinker, x, step.rows, regions.fixed)
    return Thought(hidden.index_select(0, step.before), senses, loads)


def perceive(
    model: Thinking,
    batch: Batch,
    library: Library,
    noise: torch.Generator | None,
    run: Run = plainly,
) -> tuple[Tensor, Tensor]:
    """Features [B, rows, hidden] of a batch's media and the loss of their head."""
    if batch.kind == "picture":
        index = put(batch.media, library.pictures[batch.size].pixels.rows.device)
        return look(model, library, batch.size, index, noise, run)
    clips = library.clips
    mel, lengths = clips.mels(batch.media)
    mel = mel.float() if noise is None else _mask_band(mel.float(), lengths, noise)
    features, states = hear(model.audio, mel, lengths, run)
    log_odds = model.heads.letters(states).float().log_softmax(-1).transpose(0, 1)
    letters, spelled = clips.transcripts(batch.media)
    # Lengths from the host: the loss would fetch them from the device, and wait for it.
    heard = tuple(rows_after(clips.lengths(batch.media), TOWER_STRIDE).tolist())
    return features, F.ctc_loss(
        log_odds, letters, heard, tuple(spelled.tolist()), zero_infinity=True
    )


def practise(
    model: Thinking,
    library: Library,
    size: Size,
    count: int,
    noise: torch.Generator,
    run: Run = plainly,
) -> tuple[Tensor, Tensor]:
    """Let the encoder alone look at so many pictures of a size: its loss, and the share of the
    things in them that it names right. Costs a fraction of what the thinker's looking does."""
    marks = library.pictures[size].marks
    index = torch.randint(marks.length, (count,), generator=noise, device=noise.device)
    features, loss = look(model, library, size, index, noise, run)
    things = marks.rows.index_select(0, index)[..., :SLOTS].long()
    guesses = model.heads.read_marks(features.detach())[:SLOTS]
    named = torch.stack([guess.argmax(-1) for guess in guesses], dim=-1)
    return loss, _mean((named == things).float(), (things > 0).float())


def look(
    model: Thinking,
    library: Library,
    size: Size,
    index: Tensor,
    noise: torch.Generator | None,
    run: Run,
) -> tuple[Tensor, Tensor]:
    """Features [B, rows, hidden] of the pictures `index` [B] of a size, and the loss of what the
    encoder's heads say of them."""
    store = library.pictures[size]
    pixels = store.pixels.rows.index_select(0, index).float()
    marks = store.marks.rows.index_select(0, index).long()
    if noise is not None:
        pixels = pixels + PIXEL_NOISE * torch.randn(
            pixels.shape, generator=noise, device=pixels.device
        )
    features = see(model.vision, pixels, run)
    unread = unrecognised(model.heads, features, marks)
    lost = misplaced(model.heads, features, size)
    return features, unread + lost + miscounted(model.heads, features, marks)


def unrecognised(heads: Heads, features: Tensor, marks: Tensor) -> Tensor:
    """Loss of what features [n, tokens, hidden] say of marks [n, tokens, slots].

    Where there is something counts as much as where there is nothing: most of a picture is empty,
    and in a mean over all of it nobody would miss its few letters.
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


def misplaced(heads: Heads, features: Tensor, size: Size) -> Tensor:
    """Loss of where features [n, tokens, hidden] of pictures of a size say that they lie."""
    cells = _cells(size, features.device).repeat(len(features), 1)
    return F.cross_entropy(heads.read_cells(features).float().flatten(0, 2), cells.flatten())


def miscounted(heads: Heads, features: Tensor, marks: Tensor) -> Tensor:
    """Loss of how much features [n, tokens, hidden] say to lie before them, by marks [n, tokens,
    slots], for tokens with something: to read a line out is to find the letter whose turn it is."""
    things = (marks[..., :SLOTS] > 0).sum(-1)
    before = (things.cumsum(1) - things).clamp(max=MOST_BEFORE)
    guesses = heads.read_turns(features).float().flatten(0, 1)
    missed = F.cross_entropy(guesses, before.flatten(), reduction="none")
    return _mean(missed, (things > 0).flatten().float())


@lru_cache
def _cells(size: Size, device: torch.device) -> Tensor:
    return torch.from_numpy(cell_tokens(size)).to(device)


def _mask_band(mel: Tensor, lengths: Tensor, noise: torch.Generator) -> Tensor:
    """Log-mels [n, frames, bins] with a band of bins of each at its mean over `lengths` [n]."""
    bins = mel.shape[-1]
    draws = torch.rand(2, len(mel), 1, 1, generator=noise, device=mel.device)
    width = draws[0] * BAND_SHARE * bins
    start = draws[1] * (bins - width)
    place = torch.arange(bins, device=mel.device)
    masked = (place >= start) & (place < start + width)
    mean = cut(mel, lengths).sum((1, 2)) / (lengths * bins)
    return torch.where(masked, mean[:, None, None], mel)
