"""Muon steps equally far in all directions of a matrix, and stops where AdamW does."""

import pytest
import torch
from torch import nn

from cookbook.ming_mini.muon import STEP_SIZE, Muon, orthogonalize
from cookbook.ming_mini.optimizer import Optimizer
from cookbook.ming_mini.talker_init import hidden_matrices
from sglang_omni.models.ming.speech.talker import Talker


@pytest.mark.parametrize("shape", [(3, 24, 24), (2, 16, 48), (2, 48, 16)])
def test_all_singular_values_come_near_one(shape: tuple[int, ...]) -> None:
    torch.manual_seed(0)
    values = torch.linalg.svdvals(orthogonalize(100 * torch.randn(shape)).float())
    # What the few steps of the iteration reach, in bfloat16.
    assert values.max() < 1.3
    assert values.quantile(0.1) > 0.6


def test_a_matrix_keeps_its_directions() -> None:
    left, right = (torch.linalg.qr(torch.randn(12, 12)).Q for _ in range(2))
    matrix = left @ torch.diag(torch.linspace(1, 2, 12)) @ right
    made = orthogonalize(matrix[None])[0].float()
    assert (made * (left @ right)).sum() / 12 == pytest.approx(1, abs=0.15)


def test_zeros_stay_zeros() -> None:
    assert orthogonalize(torch.zeros(1, 4, 8)).abs().max() == 0


def optimizer(matrix: nn.Parameter, other: nn.Parameter, decay: float = 0.0) -> Optimizer:
    return Optimizer([other], betas=(0.9, 0.98), decay=decay, hidden=[matrix])


def weights() -> tuple[nn.Parameter, nn.Parameter]:
    torch.manual_seed(2)
    return nn.Parameter(torch.randn(32, 64)), nn.Parameter(torch.ones(3))


def test_a_step_is_as_long_as_its_rate_says() -> None:
    matrix, other = weights()
    before, aim = matrix.detach().clone(), torch.randn(32, 64)
    descent = optimizer(matrix, other)
    descent.rate.fill_(0.5)
    descent.step((matrix * aim).sum() + other.sum())
    change = before - matrix.detach()
    assert (change * aim).sum() > 0
    # Singular values are about one, and below it on average.
    assert change.square().mean().sqrt() == pytest.approx(STEP_SIZE * 0.5, rel=0.25)
    torch.testing.assert_close(other.detach(), torch.full((3,), 0.5))


def test_weights_decay_by_the_rate() -> None:
    matrix = nn.Parameter(torch.full((2, 2), 8.0))
    Muon([matrix], decay=0.5).step(torch.tensor(0.5), torch.tensor(True))
    # A weight without a gradient has nothing else to follow.
    assert matrix.detach().tolist() == [[6.0, 6.0], [6.0, 6.0]]


def test_a_gradient_that_is_not_finite_moves_no_matrix() -> None:
    matrix, other = weights()
    before, descent = matrix.detach().clone(), optimizer(matrix, other, decay=0.1)
    descent.rate.fill_(0.25)
    descent.step((matrix * float("inf")).sum())
    assert torch.equal(matrix.detach(), before)
    descent.step(matrix.sum() + other.sum())
    assert matrix.isfinite().all()
    assert not torch.equal(matrix.detach(), before)


def test_a_continued_training_steps_as_one_that_never_stopped() -> None:
    found = []
    for stops in (False, True):
        matrix, other = weights()
        descent = optimizer(matrix, other)
        for step in range(4):
            if stops and step == 2:
                state, descent = descent.state_dict(), optimizer(matrix, other)
                descent.load_state_dict(state)
            descent.rate.fill_(0.1)
            descent.step((matrix.square() * (step + 1)).sum() + other.square().sum())
        found.append((matrix.detach(), other.detach()))
    assert all(torch.equal(one, other) for one, other in zip(*found, strict=True))


def test_embeddings_and_outputs_of_a_talker_are_left_to_adam(small_talker: Talker) -> None:
    hidden = {id(one) for one in hidden_matrices(small_talker)}
    names = {name for name, one in small_talker.named_parameters() if id(one) in hidden}
    assert "model.layers.0.mlp.up_proj.weight" in names
    assert not {name for name in names if "embed" in name or "head" in name or "final" in name}
