"""Shards, steps and resuming."""

import copy
from dataclasses import fields
from pathlib import Path

import numpy as np
import pytest
import torch

from cookbook.ming_mini.schedule import Rate
from cookbook.ming_mini.thinker.ablate import ORDERS, ablate
from cookbook.ming_mini.thinker.library import Library
from cookbook.ming_mini.thinker.make import Workshop, make_shard
from cookbook.ming_mini.thinker.model import Thinking, swap_routers
from cookbook.ming_mini.thinker.scenes import Drawn, Lettering, Scene
from cookbook.ming_mini.thinker.seeing import HUES, NAMES, mark_tokens
from cookbook.ming_mini.thinker.shards import Shard, ShardFolder, write_shard
from cookbook.ming_mini.thinker.tasks import KINDS, Kind
from cookbook.ming_mini.thinker.train import MOST_SKIPPED, Settings, Trainer, accuracy, means
from tests.cookbook.thinker.conftest import CPU

SETTINGS = Settings(10.0, tokens=600, rate=Rate(3e-3, 3e-5, 5), text_only=0.0)


@pytest.mark.parametrize("kind", KINDS)
def test_shards_are_repeatable_and_survive_the_disk(
    kind: Kind, workshop: Workshop, tmp_path: Path
) -> None:
    shard = make_shard(workshop, kind, "seed", 5)
    write_shard(tmp_path, kind, "seed", make_shard(workshop, kind, "seed", 5))
    reader = ShardFolder(tmp_path)
    ((found, read),) = reader.new()
    assert found == kind and not list(reader.new())
    for one in fields(Shard):
        assert np.array_equal(getattr(shard, one.name), getattr(read, one.name)), one.name


def test_marks_name_what_a_token_shows() -> None:
    star = Drawn("star", "red", (0, 0), 30, (0, 0))
    lettering = Lettering("ok", "blue", "DejaVuSans.ttf", 24, (96, 4))
    marks = mark_tokens(Scene((128, 128), "white", (star,), lettering)).reshape(4, 4, -1)
    assert [NAMES[n] for n in marks[0, 0, :3]] == ["star", "", ""]
    assert HUES[marks[0, 0, 3]] == "red"
    assert [NAMES[n] for n in marks[3, 0, :3]] == ["o", "k", ""]
    assert np.count_nonzero(marks) == 2 + 3


def test_steps_lower_the_loss(folder: Path, library: Library) -> None:
    trainer = new_trainer(folder, library)
    first = trainer.train()
    for _ in range(12):
        last = trainer.train()
    for kind in KINDS:
        assert float(last[kind]) < 0.9 * float(first[kind]), kind


def test_a_batch_without_a_finite_gradient_changes_nothing(folder: Path, library: Library) -> None:
    trainer = new_trainer(folder, library)
    trainer.train()
    before = {name: tensor.clone() for name, tensor in trainer.model.state_dict().items()}
    trainer.library = spoilt(library)
    report = trainer.train()
    assert set(report) == {"skipped", "skipped, speech", "skipped, speech sense"}
    assert means([report, report])["skipped"] == 2
    after = trainer.model.state_dict()
    assert all(torch.equal(after[name], tensor) for name, tensor in before.items())
    with pytest.raises(FloatingPointError, match="no finite gradient"):
        for _ in range(MOST_SKIPPED):
            trainer.train()


def spoilt(library: Library) -> Library:
    """The same library with clips that are not numbers."""
    other = copy.deepcopy(library)
    other.clips.mel.rows.fill_(float("nan"))
    return other


def new_trainer(folder: Path, library: Library) -> Trainer:
    trainer = Trainer(folder, SETTINGS, CPU)
    trainer.library = library
    return trainer


def test_a_resumed_run_has_the_same_weights_and_clock(
    folder: Path, library: Library, tmp_path: Path
) -> None:
    trainer = new_trainer(folder, library)
    trainer.train()
    trainer.spent = 4.0
    trainer.save(tmp_path)
    other = new_trainer(folder, library)
    other.resume(tmp_path)
    assert (other.step, other.progress) == (1, 0.4)
    for name, tensor in trainer.model.state_dict().items():
        assert torch.equal(other.model.state_dict()[name], tensor), name


def test_text_comes_alone_at_first(folder: Path, library: Library) -> None:
    trainer = Trainer(folder, Settings(10.0, tokens=300, text_only=0.5), CPU)
    trainer.library = library
    assert "picture" not in trainer.train()
    trainer.spent = 6.0
    assert {"text", "picture", "speech"} <= set(trainer.train())


def test_swapped_routers_swap_and_nothing_else(thinking: Thinking) -> None:
    own = thinking.state_dict()
    swapped = swap_routers(own, ORDERS["image by text"])
    changed = {name for name in own if not torch.equal(own[name], swapped[name])}
    assert changed == {name for name in own if ".image_gate." in name}
    prefix = "thinker.model.layers.1.mlp."
    image = swapped[f"{prefix}image_gate.weight"]
    assert torch.equal(image, own[f"{prefix}gate.weight"])


def test_ablation_leaves_the_model_as_it_was(thinking: Thinking, library: Library) -> None:
    before = {name: tensor.clone() for name, tensor in thinking.state_dict().items()}
    results = ablate(thinking, library)
    assert set(results) == set(ORDERS) and set(results["own"]) == set(KINDS)
    after = thinking.state_dict()
    assert all(torch.equal(after[name], tensor) for name, tensor in before.items())


def test_accuracy_is_of_whole_answers(thinking: Thinking, library: Library) -> None:
    measured = accuracy(thinking, library, 900)
    assert measured and all(value == 0.0 for value in measured.values())
