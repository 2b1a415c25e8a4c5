"""Batched training computes what the reference computes, and every router learns."""

import numpy as np
import pytest
import torch
from torch import Tensor

from cookbook.ming_mini.thinker.balance import max_relative_load, sum_counts, update_biases
from cookbook.ming_mini.thinker.curriculum import MAX_TOKENS
from cookbook.ming_mini.thinker.example_pools import Examples
from cookbook.ming_mini.thinker.expert_targets import expert_shares
from cookbook.ming_mini.thinker.forward import run_thinker
from cookbook.ming_mini.thinker.library import Batch, Library
from cookbook.ming_mini.thinker.model import TrainableThinker
from cookbook.ming_mini.thinker.step_batch import join_batches
from cookbook.ming_mini.thinker.tasks import KINDS, Kind
from cookbook.ming_mini.thinker.training_losses import encode_media, evaluate_batch
from sglang_omni.models.ming.encoders.grid import compute_grid
from sglang_omni.models.ming.encoders.pixels import patchify
from sglang_omni.models.ming.thinker.routing import AUDIO, IMAGE, ROUTERS, TEXT
from tests.cookbook.thinker.conftest import CPU

TOLERANCE = 2e-5


def embedded(model: TrainableThinker, batch: Batch, library: Library) -> Tensor:
    """Embeddings [T, hidden] with features in their places."""
    x = model.thinker.model.word_embeddings(torch.from_numpy(batch.ids)).flatten(0, 1)
    if batch.kind == "text":
        return x
    features, _ = encode_media(model, batch, library, None)
    rows = features.flatten(0, 1)[torch.from_numpy(batch.sources)]
    return x.index_copy(0, torch.from_numpy(batch.places), rows)


@pytest.mark.parametrize("kind", KINDS)
@torch.no_grad()
def test_logits_are_the_references(
    kind: Kind, thinking: TrainableThinker, library: Library
) -> None:
    batch = library.draw(kind, 900)
    shape = batch.ids.shape
    x, rows = embedded(thinking, batch, library), join_batches([batch]).rows
    hidden, _ = run_thinker(thinking.thinker, x, rows)
    ours = thinking.thinker.lm_head(hidden).unflatten(0, shape)
    x, routes = x.unflatten(0, shape), rows.routes.unflatten(0, shape)
    positions = rows.positions.unflatten(1, shape)
    for row in range(len(batch.ids)):
        real = int(batch.real[row].sum())
        own = routes[row, :real]
        assert (own > 0).any() == (kind != "text")
        theirs = thinking.thinker(x[row, :real], positions[:, row, :real], own)
        torch.testing.assert_close(ours[row, :real], theirs, rtol=0, atol=TOLERANCE)


@torch.no_grad()
def test_pictures_are_seen_as_the_reference_sees_them(
    thinking: TrainableThinker, library: Library
) -> None:
    batch = library.draw("picture", 600)
    ours, _ = encode_media(thinking, batch, library, None)
    config = thinking.vision.vision.config
    for number, features in zip(batch.media, ours, strict=True):
        frames = library.pictures[batch.size].pixels.rows[number][None]
        theirs = thinking.vision(patchify(frames, config), [compute_grid(frames.shape, config)])
        torch.testing.assert_close(features, theirs, rtol=0, atol=TOLERANCE)


@torch.no_grad()
def test_clips_are_heard_as_the_product_hears_them(
    thinking: TrainableThinker, library: Library
) -> None:
    numbers = np.arange(6)
    mels, lengths = library.clips.mels(numbers)
    assert len(set(lengths.tolist())) > 1
    packed = thinking.audio(
        [mel[:length].float() for mel, length in zip(mels, lengths, strict=True)]
    )
    batch = library.batch("speech", clip_examples(library, numbers))
    ours, _ = encode_media(thinking, batch, library, None)
    for features, theirs in zip(ours, packed, strict=True):
        torch.testing.assert_close(features[: len(theirs)], theirs, rtol=0, atol=TOLERANCE)


def clip_examples(library: Library, numbers: np.ndarray) -> Examples:
    """An example of each of these clips, of whatever length."""
    pools = [pool.examples(np.arange(len(pool))) for pool in library.groups["speech"].values()]
    wide = [np.pad(one.ids, ((0, 0), (0, MAX_TOKENS - one.ids.shape[1]))) for one in pools]
    names = ("ends", "answers", "tasks", "media")
    rest = [np.concatenate([getattr(one, name) for one in pools]) for name in names]
    _, firsts = np.unique(rest[-1], return_index=True)
    return Examples(*(array[firsts[numbers]] for array in (np.concatenate(wide), *rest)))


@pytest.mark.parametrize(
    ("kind", "used"), [("text", {TEXT}), ("picture", {TEXT, IMAGE}), ("speech", {TEXT, AUDIO})]
)
def test_gradients_reach_the_routers_of_the_modality(
    kind: Kind, used: set[int], thinking: TrainableThinker, library: Library
) -> None:
    """But in the last layer: no text follows from what it makes of a picture or a clip."""
    evaluate_batch(thinking, library.draw(kind, 600), library).loss.backward()
    *layers, last = thinking.sparse_layers()
    assert last.gate.weight.grad is not None
    assert last.gate.weight.grad.any()
    for layer in layers:
        for route, name in enumerate(ROUTERS):
            gradient = getattr(layer, name).weight.grad.abs().sum()
            assert (gradient > 0) == (route in used), name


def test_every_weight_learns_from_the_three_kinds_together(
    thinking: TrainableThinker, library: Library
) -> None:
    for batch in (batch for kind in KINDS for batch in library.all(kind, 3000)):
        learnt = evaluate_batch(thinking, batch, library)
        uneven = torch.stack([load.uneven for load in learnt.loads]).sum()
        (learnt.loss + learnt.sense + uneven).backward()
    still = [
        name
        for name, parameter in thinking.named_parameters()
        if parameter.requires_grad and (parameter.grad is None or not parameter.grad.any())
    ]
    assert not still


def test_biases_follow_the_counts_of_their_own_router(
    thinking: TrainableThinker, library: Library
) -> None:
    layers = thinking.sparse_layers()
    before = [layer.gate.expert_bias.clone() for layer in layers]
    unused = [layer.audio_gate.expert_bias.clone() for layer in layers]
    counts = sum_counts([evaluate_batch(thinking, library.draw("text", 600), library).loads])
    update_biases(layers, counts, 0.5)
    for layer, old, idle, count in zip(layers, before, unused, counts, strict=True):
        moved = layer.gate.expert_bias - old
        surplus = count[TEXT] / count[TEXT].sum() - expert_shares(layer.routing, CPU)[TEXT]
        busiest, idlest = surplus.argmax(), surplus.argmin()
        assert moved[busiest] < -0.49
        assert moved[idlest] > 0.49
        assert torch.equal(layer.audio_gate.expert_bias, idle)
    assert max_relative_load(counts, layers[0].routing)[TEXT] >= 1


def test_homes_differ_and_together_keep_every_expert_busy(thinking: TrainableThinker) -> None:
    shares = expert_shares(thinking.sparse_layers()[0].routing, CPU)
    torch.testing.assert_close(shares.sum(-1), torch.ones(3))
    assert len(shares.argmax(-1).unique()) == 3
    assert shares.max(dim=0).values.unique().numel() <= 2
    assert (shares > 0).all()


@torch.no_grad()
def test_padding_counts_for_no_router(thinking: TrainableThinker, library: Library) -> None:
    batch = library.draw("text", 600)
    (first, *_) = evaluate_batch(thinking, batch, library).loads
    top_k = thinking.sparse_layers()[0].routing.top_k
    assert first.counts.sum() == batch.real.sum() * top_k


@pytest.mark.parametrize("kind", KINDS)
def test_bfloat16_changes_little(kind: Kind, thinking: TrainableThinker, library: Library) -> None:
    """As on a GPU: every product in bfloat16, every weight and gradient in float32."""
    batch = library.draw(kind, 600)
    plain = evaluate_batch(thinking, batch, library)
    with torch.autocast("cpu", torch.bfloat16):
        rounded = evaluate_batch(thinking, batch, library)
    (rounded.loss + rounded.sense).backward()
    torch.testing.assert_close(rounded.loss, plain.loss, rtol=0.01, atol=0)
    torch.testing.assert_close(rounded.sense, plain.sense, rtol=0.01, atol=0)
    gradients = [p.grad for p in thinking.parameters() if p.grad is not None]
    assert {one.dtype for one in gradients} == {torch.float32}
