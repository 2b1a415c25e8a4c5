"""What makes a step fast changes nothing that it learns."""

from dataclasses import fields, replace
from pathlib import Path

import numpy as np
import pytest
import torch
from torch import Tensor

from cookbook.ming_mini.compilation import EAGER, Regions, compiled_regions
from cookbook.ming_mini.prefetch import Prefetch
from cookbook.ming_mini.thinker.example_pools import Examples, Pool
from cookbook.ming_mini.thinker.forward import chosen_experts
from cookbook.ming_mini.thinker.library import Batch, Library
from cookbook.ming_mini.thinker.make import ShardMaker, make_shard
from cookbook.ming_mini.thinker.model import TrainableThinker
from cookbook.ming_mini.thinker.step_batch import join_batches
from cookbook.ming_mini.thinker.tasks import KINDS
from cookbook.ming_mini.thinker.train import Settings, Trainer, new_library
from cookbook.ming_mini.thinker.training_losses import BatchLosses, compute_losses
from sglang_omni.models.ming.thinker.routing import Routing, select_experts
from tests.cookbook.thinker.conftest import CPU

SETTINGS = Settings(10.0, tokens=4000, text_only=0.0)
TOLERANCE = 1e-5


def gradients(
    model: TrainableThinker,
    library: Library,
    batches: list[Batch],
    least: int = 0,
    regions: Regions = EAGER,
) -> tuple[list[BatchLosses], dict[str, Tensor]]:
    """Losses of a step and the gradients of their sum, by parameter."""
    model.zero_grad()
    losses, loads = compute_losses(model, join_batches(batches, least), library, regions=regions)
    uneven = torch.stack([load.uneven for load in loads]).sum()
    (sum(one.answers + one.sense for one in losses) + uneven).backward()
    learnt = {n: p.grad.clone() for n, p in model.named_parameters() if p.grad is not None}
    return losses, learnt


def assert_same(one: dict[str, Tensor], other: dict[str, Tensor]) -> None:
    """As gradients, tensor by tensor."""
    assert one.keys() == other.keys()
    for name, gradient in one.items():
        error = (gradient - other[name]).norm() / gradient.norm().clamp(min=1e-6)
        assert error < TOLERANCE, name


def test_rows_of_no_sequence_change_nothing(thinking: TrainableThinker, library: Library) -> None:
    batches = [library.draw(kind, 600) for kind in KINDS]
    losses, plain = gradients(thinking, library, batches)
    more, padded = gradients(thinking, library, batches, least=2500)
    for one, other in zip(losses, more, strict=True):
        torch.testing.assert_close(one.answers, other.answers)
        torch.testing.assert_close(one.sense, other.sense)
    assert_same(plain, padded)


def test_batches_together_have_the_losses_of_each_alone(
    thinking: TrainableThinker, library: Library
) -> None:
    batches = [library.draw(kind, 600) for kind in KINDS]
    together, _ = compute_losses(thinking, join_batches(batches, 2000), library)
    for batch, one in zip(batches, together, strict=True):
        (alone,), _ = compute_losses(thinking, join_batches([batch]), library)
        torch.testing.assert_close(one.answers, alone.answers)
        torch.testing.assert_close(one.sense, alone.sense)


def test_frames_behind_a_clip_change_nothing(
    thinking: TrainableThinker, library: Library, monkeypatch: pytest.MonkeyPatch
) -> None:
    state = library._random.bit_generator.state
    losses, plain = gradients(thinking, library, [library.draw("speech", 600)])
    monkeypatch.setattr("cookbook.ming_mini.thinker.media_store.FRAME_STEP", 256)
    library._random.bit_generator.state = state
    longer, padded = gradients(thinking, library, [library.draw("speech", 600)])
    torch.testing.assert_close(losses[0].answers, longer[0].answers)
    torch.testing.assert_close(losses[0].sense, longer[0].sense)
    assert_same(plain, padded)


@pytest.mark.long
def test_compiled_steps_learn_the_same_and_compile_once(
    folder: Path, workshop: ShardMaker, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Steps of other lengths, and after biases moved, run what the first one compiled."""
    # Who imports SGLang for a CPU in this process sets it.
    monkeypatch.delenv("TORCHDYNAMO_DISABLE", raising=False)
    trainer, regions = Trainer(folder, SETTINGS, CPU), compiled_regions("aot_eager")
    for kind in KINDS:
        # Enough for more rows than any matrix is wide: numbers that are equal count as one.
        trainer.library.add(kind, make_shard(workshop, kind, "compiled", 40))
    torch._dynamo.reset()
    graphs = []
    for _ in range(4):
        batches = list(trainer.draw().joined.batches)
        _, plain = gradients(trainer.model, trainer.library, batches, SETTINGS.tokens)
        _, fast = gradients(trainer.model, trainer.library, batches, SETTINGS.tokens, regions)
        assert_same(plain, fast)
        graphs.append(torch._dynamo.utils.counters["stats"]["unique_graphs"])
        for layer in trainer.model.sparse_layers():
            layer.gate.expert_bias.data += torch.randn(layer.routing.experts)
    assert not torch._dynamo.utils.counters["graph_break"]
    assert len(set(graphs)) == 1
    assert graphs[0] > 0


def test_experts_chosen_without_sorting_are_the_products() -> None:
    generator = torch.Generator().manual_seed(0)
    for experts, groups, top_groups, top_k in ((16, 8, 4, 4), (8, 4, 2, 2), (12, 3, 2, 5)):
        routing = Routing(experts, groups, top_groups, top_k, 1.0)
        logits, bias = torch.randn(2, 500, experts, generator=generator)
        _, ids = select_experts(logits, bias, routing)
        chosen = chosen_experts(logits.sigmoid() + bias, routing)
        assert torch.equal(chosen, torch.zeros_like(chosen).scatter(1, ids, True))


def test_batches_drawn_ahead_are_those_drawn_in_turn(
    folder: Path, thinking: TrainableThinker, workshop: ShardMaker
) -> None:
    trainers = [Trainer(folder, SETTINGS, CPU) for _ in range(2)]
    shards = {kind: make_shard(workshop, kind, "ahead", 8) for kind in KINDS}
    for trainer in trainers:
        trainer.library = new_library(folder, thinking, CPU, seed=5)
        for kind, shard in shards.items():
            trainer.library.add(kind, shard)
    ahead = Prefetch(trainers[0].draw)
    for _ in range(5):
        ours, theirs = ahead.draw(), trainers[1].draw()
        assert ours.shares == theirs.shares
        for one, other in zip(ours.joined.batches, theirs.joined.batches, strict=True):
            for name in (field.name for field in fields(one)):
                assert np.array_equal(getattr(one, name), getattr(other, name)), name
    ahead.rest()
    trainers[0].library.add("text", shards["text"])
    assert ahead.draw().joined.batches


def test_a_failure_ahead_is_raised_where_the_batch_is_wanted() -> None:
    ahead = Prefetch(lambda: 1 // 0)
    ahead.rest()
    with pytest.raises(ZeroDivisionError):
        ahead.draw()


def test_a_pool_keeps_what_it_did_not_forget() -> None:
    pool = Pool(3)
    ids = np.arange(30, dtype=np.int16).reshape(10, 3)
    numbers = np.arange(10)
    new = Examples(ids, numbers + 1, numbers, numbers, numbers)
    pool.add(new)
    pool.add(replace(new, media=numbers + 10))
    places = np.array([19, 3, 0, 12])
    pool.remove(places)
    left = pool.examples(np.arange(len(pool)))
    assert sorted(left.media.tolist()) == [n for n in range(20) if n not in places]
    assert np.array_equal(left.ids, ids[left.media % 10])
    assert np.array_equal(left.ends, left.media % 10 + 1)
