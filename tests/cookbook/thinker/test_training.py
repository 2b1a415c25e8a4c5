"""Shards, steps and resuming."""

import copy
import subprocess
import sys
from dataclasses import fields, replace
from pathlib import Path
from random import Random

import numpy as np
import pytest
import torch

from cookbook.ming_mini.schedule import Rate
from cookbook.ming_mini.thinker.ablate import ORDERS, ablate
from cookbook.ming_mini.thinker.curriculum import BOOST
from cookbook.ming_mini.thinker.library import Library, answer_weights
from cookbook.ming_mini.thinker.make import ShardMaker, make_shard
from cookbook.ming_mini.thinker.model import Heads, TrainableThinker, swap_routers
from cookbook.ming_mini.thinker.picture_labels import (
    HUES,
    NAMES,
    TOKEN_SIDE,
    cell_tokens,
    mark_tokens,
)
from cookbook.ming_mini.thinker.picture_tasks import shape_scene
from cookbook.ming_mini.thinker.reports import MAX_SKIPPED, Reports
from cookbook.ming_mini.thinker.scenes import DrawnShape, Lettering, Scene
from cookbook.ming_mini.thinker.shards import Shard, ShardFolder, write_shard
from cookbook.ming_mini.thinker.tasks import KINDS, TASKS, Kind
from cookbook.ming_mini.thinker.train import Settings, Trainer, accuracy
from cookbook.ming_mini.thinker.training_losses import count_loss, mark_loss
from tests.cookbook.thinker.conftest import CPU

WORDS = Path(__file__).parents[3] / "ci" / "gates" / "words.json"
SETTINGS = Settings(10.0, tokens=600, rate=Rate(3e-3, 3e-5, 5), text_only=0.0)


@pytest.mark.parametrize("kind", KINDS)
def test_shards_are_repeatable_and_survive_the_disk(
    kind: Kind, workshop: ShardMaker, tmp_path: Path
) -> None:
    shard = make_shard(workshop, kind, "seed", 5)
    write_shard(tmp_path, kind, "seed", make_shard(workshop, kind, "seed", 5))
    reader = ShardFolder(tmp_path)
    ((found, read),) = reader.new()
    assert found == kind
    assert not list(reader.new())
    for one in fields(Shard):
        assert np.array_equal(getattr(shard, one.name), getattr(read, one.name)), one.name


def test_marks_name_what_a_token_shows() -> None:
    star = DrawnShape("star", "red", (0, 0), 30, (0, 0))
    lettering = Lettering("ok", "blue", "DejaVuSans.ttf", 24, (96, 4))
    marks = mark_tokens(Scene((128, 128), "white", (star,), lettering)).reshape(4, 4, -1)
    assert [NAMES[n] for n in marks[0, 0, :3]] == ["star", "", ""]
    assert HUES[marks[0, 0, 3]] == "red"
    assert [NAMES[n] for n in marks[3, 0, :3]] == ["o", "k", ""]
    assert np.count_nonzero(marks) == 2 + 3


def test_the_token_of_a_shape_lies_in_the_cell_of_the_shape() -> None:
    rng = Random(1)
    for scene in (shape_scene(rng) for _ in range(300)):
        across = scene.size[1] // TOKEN_SIDE
        for one in scene.shapes:
            row, column = (int(part // TOKEN_SIDE) for part in scene.centre(one))
            assert tuple(cell_tokens(scene.size)[row * across + column]) == one.cell


def test_the_loss_of_marks_is_the_same_however_empty_the_picture() -> None:
    heads = Heads(hidden=8, state=4)
    features = torch.randn(8, generator=torch.Generator().manual_seed(2))
    marks = torch.tensor([[5, 6, 7, 1], [0, 0, 0, 0]])
    emptier = torch.cat([marks, torch.zeros(40, 4, dtype=torch.long)])
    plain, other = (
        mark_loss(heads, features.expand(1, len(one), 8), one[None]).detach()
        for one in (marks, emptier)
    )
    assert float(other) == pytest.approx(float(plain))


def test_a_letter_knows_how_many_lie_before_it() -> None:
    heads = Heads(hidden=4, state=4)
    with torch.no_grad():
        heads.turns.weight.zero_()
        heads.turns.weight[[0, 2, 3], [0, 1, 2]] = 50.0
        heads.turns.bias.zero_()
    marks = torch.tensor([[[9, 10, 0, 1], [0] * 4, [11, 0, 0, 1], [12, 13, 14, 1]]])
    features = torch.eye(4)[[0, 3, 1, 2]][None]
    assert float(count_loss(heads, features, marks).detach()) == pytest.approx(0.0, abs=1e-6)
    assert float(count_loss(heads, features.flip(1), marks).detach()) > 10.0


def test_short_answers_count_for_more_than_their_length() -> None:
    weights = answer_weights(np.repeat([0, 1, 2], [1, 4, 16]), np.full(3, TASKS.index("repeat")))
    assert weights.sum() == pytest.approx(1.0)
    assert [weights[n] * count for n, count in ((0, 1), (1, 4), (5, 16))] == pytest.approx(
        [1 / 7, 2 / 7, 4 / 7]
    )


def test_what_is_learnt_last_counts_for_more() -> None:
    tasks = np.array([TASKS.index("repeat"), TASKS.index("choice")])
    alike, chosen = answer_weights(np.array([0, 1]), tasks)
    assert chosen == pytest.approx(BOOST["choice"] * alike)


def test_the_encoder_practises_on_signs_from_the_first_step(folder: Path, library: Library) -> None:
    trainer = new_trainer(folder, library, replace(SETTINGS, signs=3, text_only=1.0))
    before = trainer.model.heads.marks.weight.detach().clone()
    report = trainer.train()
    assert {"text", "signs", "letters"} <= set(report)
    assert "picture" not in report
    assert 0.0 <= float(report["letters"]) <= 1.0
    assert not torch.equal(trainer.model.heads.marks.weight, before)


@pytest.mark.extended
def test_steps_lower_the_loss(folder: Path, library: Library) -> None:
    trainer = new_trainer(folder, library)
    first = trainer.train()
    for _ in range(20):
        last = trainer.train()
    for kind in KINDS:
        assert float(last[kind]) < 0.9 * float(first[kind]), kind


@pytest.mark.extended
def test_a_batch_without_a_finite_gradient_changes_nothing(folder: Path, library: Library) -> None:
    trainer, reports = new_trainer(folder, library), Reports()
    trainer.train()
    before = state_of(trainer)
    trainer.library = spoilt(library)
    for _ in range(2):
        reports.add(trainer.train())
    expected = {"steps", "skipped", "skipped, speech", "skipped, speech sense"}
    found = reports.flush()
    assert set(found) == expected
    assert set(found.values()) == {2.0}
    after = state_of(trainer)
    assert all(torch.equal(after[name], tensor) for name, tensor in before.items())
    for _ in range(MAX_SKIPPED - 1):
        reports.add(trainer.train())
    with pytest.raises(FloatingPointError, match="no finite gradient"):
        reports.flush()


def test_a_step_that_moves_ends_the_row_of_skipped_ones(folder: Path, library: Library) -> None:
    trainer, reports = new_trainer(folder, library), Reports()
    moved = trainer.train()
    skipped = moved | {"skipped": torch.ones(()), "text": torch.tensor(float("inf"))}
    for one in (*[skipped] * MAX_SKIPPED, moved, *[skipped] * MAX_SKIPPED):
        reports.add(one)
    found = reports.flush()
    assert found["skipped"] == found["skipped, text"] == 2 * MAX_SKIPPED
    assert found["text"] == pytest.approx(float(moved["text"]))


def state_of(trainer: Trainer) -> dict[str, torch.Tensor]:
    """Copies of the weights and of what the optimizer remembers."""
    optimizer = trainer._descent.state_dict()["state"]
    moments = {f"{n} {key}": one[key] for n, one in optimizer.items() for key in one}
    return {name: one.clone() for name, one in (trainer.model.state_dict() | moments).items()}


def spoilt(library: Library) -> Library:
    """The same library with clips that are not numbers."""
    other = copy.deepcopy(library)
    other.clips.mel.rows.fill_(float("nan"))
    return other


def new_trainer(folder: Path, library: Library, settings: Settings = SETTINGS) -> Trainer:
    trainer = Trainer(folder, settings, CPU)
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


def test_a_run_may_begin_with_anothers_weights_alone(
    folder: Path, library: Library, tmp_path: Path
) -> None:
    trainer = new_trainer(folder, library)
    trainer.train()
    trainer.save(tmp_path)
    other = new_trainer(folder, library)
    with pytest.raises(FileNotFoundError):
        other.load_weights(tmp_path / "nowhere")
    other.load_weights(tmp_path)
    assert (other.step, other.progress) == (0, 0.0)
    for name, tensor in trainer.model.state_dict().items():
        assert torch.equal(other.model.state_dict()[name], tensor), name


def test_text_comes_alone_at_first(folder: Path, library: Library) -> None:
    trainer = Trainer(folder, Settings(10.0, tokens=300, text_only=0.5), CPU)
    trainer.library = library
    assert "picture" not in trainer.train()
    trainer.spent = 6.0
    assert {"text", "picture", "speech"} <= set(trainer.train())


def test_swapped_routers_swap_and_nothing_else(thinking: TrainableThinker) -> None:
    own = thinking.state_dict()
    swapped = swap_routers(own, ORDERS["image by text"])
    changed = {name for name in own if not torch.equal(own[name], swapped[name])}
    assert changed == {name for name in own if ".image_gate." in name}
    prefix = "thinker.model.layers.1.mlp."
    image = swapped[f"{prefix}image_gate.weight"]
    assert torch.equal(image, own[f"{prefix}gate.weight"])


@pytest.mark.extended
def test_ablation_leaves_the_model_as_it_was(thinking: TrainableThinker, library: Library) -> None:
    before = {name: tensor.clone() for name, tensor in thinking.state_dict().items()}
    results = ablate(thinking, library)
    assert set(results) == set(ORDERS)
    assert set(results["own"]) == set(KINDS)
    after = thinking.state_dict()
    assert all(torch.equal(after[name], tensor) for name, tensor in before.items())


def test_accuracy_is_of_whole_answers(thinking: TrainableThinker, library: Library) -> None:
    measured = accuracy(thinking, library, 900)
    assert measured
    assert all(value == 0.0 for value in measured.values())


def test_a_maker_that_cannot_open_its_model_ends(tmp_path: Path) -> None:
    program = [sys.executable, "-m", "cookbook.ming_mini.thinker.make", "--kind", "text"]
    places = ["--model", str(tmp_path / "nowhere"), "--output", str(tmp_path)]
    ended = subprocess.run(
        [*program, *places, "--lexicon", str(WORDS), "--processes", "1"],
        check=False, capture_output=True, text=True, timeout=100,
    )  # fmt: skip
    assert ended.returncode == 1
    assert "BrokenProcessPool" in ended.stderr
