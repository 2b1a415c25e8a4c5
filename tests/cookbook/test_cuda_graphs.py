"""Recorded steps are the steps that were written; batches come in few shapes."""

from dataclasses import replace

import numpy as np
import pytest
import torch

from cookbook.ming_mini import train_talker, train_vae
from cookbook.ming_mini.batches import LADDER, Batcher, prompt_frame, shape_of
from cookbook.ming_mini.corpus import Chunk
from cookbook.ming_mini.cuda_graphs import StepReplay
from cookbook.ming_mini.optimizer import Optimizer
from cookbook.ming_mini.utterances import Library, UtteranceTables
from cookbook.ming_mini.vae_init import new_vae
from sglang_omni.models.ming.config import TalkerConfig, VAEConfig
from sglang_omni.models.ming.speech.prompt import PromptTokenizer

Configs = tuple[TalkerConfig, VAEConfig]


def filled(configs: Configs, chunk: Chunk, tokenizer: PromptTokenizer, device: str) -> Library:
    vae = new_vae(configs[1], seed=0).to(device).requires_grad_(False)
    library = Library(vae, 200, torch.device(device))
    train_talker.add_chunks(library, tokenizer, iter([chunk]))
    return library


def test_a_batch_names_only_patches_that_are_there(
    small_configs: Configs, chunk: Chunk, tokenizer: PromptTokenizer
) -> None:
    tables = filled(small_configs, chunk, tokenizer, "cpu").tables
    batcher = Batcher(tables, prompt_frame(tokenizer), 48, seed=0)
    shapes = set()
    for _ in range(20):
        batch = batcher.draw()
        count, most = batch.target.shape
        assert 4 * most in LADDER
        assert count == 48 // most
        assert batch.ids.shape[1] == shape_of(4 * most).rows
        rows, places = np.divmod(batch.chosen, most)
        assert len(rows) == 48
        assert np.all(places < batch.patches[rows])
        assert len(set(batch.chosen)) == batch.patches.sum()
        shapes.add(batch.target.shape)
    assert len(shapes) > 1


def test_a_batcher_takes_in_what_is_added_to_its_tables(
    small_configs: Configs, chunk: Chunk, tokenizer: PromptTokenizer
) -> None:
    whole = filled(small_configs, chunk, tokenizer, "cpu").tables
    first, *rest = (one for length in sorted(whole.by_patches) for one in whole.by_patches[length])
    tables = UtteranceTables()
    tables.add_utterance(first)
    batcher = Batcher(tables, prompt_frame(tokenizer), 48, seed=0)
    assert {batcher.draw().target.shape[1] for _ in range(20)} == {6}
    for one in rest:
        tables.add_utterance(one)
    assert {batcher.draw().target.shape[1] for _ in range(40)} == {6, 8}


def test_a_descent_follows_its_rate() -> None:
    weight = torch.nn.Parameter(torch.ones(3))
    descent = Optimizer([weight], betas=(0.9, 0.98), decay=0.0)
    descent.step(weight.sum())
    assert weight.detach().tolist() == [1, 1, 1]
    descent.rate.fill_(0.25)
    descent.step(weight.sum())
    # Adam's step is its rate where the gradient never changes.
    torch.testing.assert_close(weight.detach(), torch.full((3,), 0.75))


def test_only_what_may_decay_does() -> None:
    matrix, norm = (torch.nn.Parameter(torch.ones(2)) for _ in range(2))
    descent = Optimizer([matrix], betas=(0.9, 0.98), decay=0.1, steady=[norm])
    descent.rate.fill_(0.5)
    first = descent.state_dict()
    assert descent.step(3 * (matrix.sum() + norm.sum())) == pytest.approx(6.0)
    assert matrix.tolist() == pytest.approx([0.45] * 2)
    assert norm.tolist() == pytest.approx([0.5] * 2)
    descent.load_state_dict(first)
    descent.rate.fill_(0.0)
    descent.step(matrix.sum() + norm.sum())
    assert matrix.tolist() == pytest.approx([0.45] * 2)
    assert norm.tolist() == pytest.approx([0.5] * 2)


@pytest.mark.parametrize("device", ["cpu", pytest.param("cuda", marks=pytest.mark.gpu)])
def test_a_gradient_that_is_not_finite_moves_nothing(device: str) -> None:
    weight = torch.nn.Parameter(torch.ones(3, device=device))
    descent = Optimizer([weight], betas=(0.9, 0.98), decay=0.1)
    descent.rate.fill_(0.25)
    descent.step((weight * float("inf")).sum())
    assert weight.detach().tolist() == [1, 1, 1]
    descent.step(weight.sum())
    assert weight.isfinite().all()
    assert weight[0] < 1


@pytest.mark.gpu
def test_a_replay_draws_and_sums_as_its_step_does() -> None:
    assert sums(record=False) == sums(record=True)


def sums(record: bool) -> list[list[float]]:
    """Running sums of draws, in steps of two kinds."""
    generator = torch.Generator("cuda").manual_seed(1)
    total = torch.zeros(4, device="cuda")

    def step(key: int, inputs: tuple[torch.Tensor, ...]) -> torch.Tensor:
        total.add_(key * inputs[0] + torch.rand(4, generator=generator, device="cuda"))
        return total.clone()

    replay = StepReplay(step, generator, record)
    return [replay(n % 2, [torch.full((4,), float(n))]).tolist() for n in range(9)]


@pytest.mark.gpu
def test_a_recorded_talker_learns_what_a_plain_one_does(
    small_configs: Configs, chunk: Chunk, tokenizer: PromptTokenizer
) -> None:
    library = filled(small_configs, chunk, tokenizer, "cuda")
    plain = train_talker.Settings(patches=48, compile=False, record=False)
    found = []
    for settings in (plain, replace(plain, record=True)):
        device = torch.device("cuda")
        trainer = train_talker.Trainer(small_configs[0], settings, library.store, device)
        batcher = Batcher(library.tables, prompt_frame(tokenizer), settings.patches, seed=0)
        steps = [trainer.train(batcher.draw(), 0.1) for _ in range(12)]
        found.append((steps[-1].flow.item(), trainer.talker.stop_head.weight.sum().item()))
    # Sums in another order.
    assert found[0] == pytest.approx(found[1], rel=2e-2)


@pytest.mark.gpu
def test_a_recorded_vae_learns_what_a_plain_one_does(small_configs: Configs, chunk: Chunk) -> None:
    device, found = torch.device("cuda"), []
    tape = train_vae.SpeechBuffer(0.01, device)
    tape.add([chunk])
    for record in (False, True):
        settings = train_vae.Settings(batch=2, crop=6, channels=4, record=record)
        trainer = train_vae.Trainer(small_configs[1], settings, tape, device)
        reports = [trainer.train(progress) for progress in (0, 0, 0, 0, 1, 1, 1, 1)]
        found.append([reports[-1][name].item() for name in ("mel", "nats", "judged")])
    assert found[0] == pytest.approx(found[1], rel=2e-2)
