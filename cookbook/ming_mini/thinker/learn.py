"""One batch through the model: the answers' loss, whether they are right, and the encoders' own."""

from dataclasses import dataclass

import torch
import torch.nn.functional as F
from torch import Tensor

from cookbook.ming_mini.thinker.forward import Load, Rows, think
from cookbook.ming_mini.thinker.library import Batch, Library
from cookbook.ming_mini.thinker.model import Thinking
from cookbook.ming_mini.thinker.senses import hear, see
from sglang_omni.models.ming.encoders.audio import TOWER_STRIDE, strided

PIXEL_NOISE = 6.0
"""Deviation of the noise on pixels in training, of 255."""
BAND_SHARE = 0.15
"""Of the mel bins, at most masked in training."""


@dataclass(frozen=True)
class Learnt:
    """`loss` is the mean over the answers' tokens, and `right` [B] tells whether greedy decoding
    would print exactly the answer. `sense` is the encoder's own loss, 0 for text."""

    loss: Tensor
    right: Tensor
    sense: Tensor
    loads: list[Load]


def study(
    model: Thinking, batch: Batch, library: Library, noise: torch.Generator | None = None
) -> Learnt:
    """Run a batch; with `noise`, media are varied as in training."""
    device = model.thinker.lm_head.weight.device
    put = lambda array: torch.from_numpy(array).to(device, non_blocking=True)  # noqa: E731
    x = model.thinker.model.word_embeddings(put(batch.ids))
    sense = x.new_zeros(())
    if batch.kind != "text":
        features, sense = perceive(model, batch, library, noise)
        flat = features.flatten(0, 1)[put(batch.sources)]
        x = x.flatten(0, 1).index_copy(0, put(batch.places), flat.to(x.dtype)).view_as(x)
    rows = Rows(put(batch.positions), put(batch.routes), put(batch.real))
    hidden, loads = think(model.thinker, x, rows)
    logits = model.thinker.lm_head(hidden.flatten(0, 1)[put(batch.before)]).float()
    answers = put(batch.answers)
    wrong = (logits.argmax(-1) != answers).float()
    misses = torch.zeros(len(batch.ids), device=device).index_add(0, put(batch.owners), wrong)
    return Learnt(F.cross_entropy(logits, answers), misses == 0, sense, loads)


def perceive(
    model: Thinking, batch: Batch, library: Library, noise: torch.Generator | None
) -> tuple[Tensor, Tensor]:
    """Features [B, rows, hidden] of a batch's media and the loss of their head."""
    if batch.kind == "picture":
        return _see(model, batch, library, noise)
    mel, lengths = library.clips.mels(batch.media)
    mel = mel.float() if noise is None else _mask_band(mel.float(), noise)
    features, states = hear(model.audio, mel, lengths)
    log_odds = model.heads.letters(states).float().log_softmax(-1).transpose(0, 1)
    letters, _ = library.clips.transcripts(batch.media)
    # Lengths from the host: the loss would fetch them from the device, and wait for it.
    heard = tuple(strided(library.clips.frames[n][1], TOWER_STRIDE) for n in batch.media)
    spelled = tuple(library.clips.spelled[n][1] for n in batch.media)
    return features, F.ctc_loss(log_odds, letters, heard, spelled, zero_infinity=True)


def _see(
    model: Thinking, batch: Batch, library: Library, noise: torch.Generator | None
) -> tuple[Tensor, Tensor]:
    store = library.pictures[batch.size]
    index = torch.from_numpy(batch.media).to(store.pixels.rows.device)
    pixels, marks = store.pixels.rows[index].float(), store.marks.rows[index].long()
    if noise is not None:
        pixels = pixels + PIXEL_NOISE * torch.randn(
            pixels.shape, generator=noise, device=pixels.device
        )
    features = see(model.vision, pixels)
    guesses = model.heads.read_marks(features)
    losses = [
        F.cross_entropy(guess.flatten(0, 1).float(), marks[..., slot].flatten())
        for slot, guess in enumerate(guesses)
    ]
    return features, torch.stack(losses).sum()


def _mask_band(mel: Tensor, noise: torch.Generator) -> Tensor:
    """Log-mels [n, frames, bins] with a band of bins of each at its mean."""
    bins = mel.shape[-1]
    draws = torch.rand(2, len(mel), 1, 1, generator=noise, device=mel.device)
    width = draws[0] * BAND_SHARE * bins
    start = draws[1] * (bins - width)
    place = torch.arange(bins, device=mel.device)
    masked = (place >= start) & (place < start + width)
    return torch.where(masked, mel.mean(dim=(1, 2), keepdim=True), mel)
