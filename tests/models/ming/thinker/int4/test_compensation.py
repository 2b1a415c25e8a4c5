"""Errors are compensated as an exact solution of each step does it, and outputs are nearer."""

import pytest
import torch
from torch import Tensor

from sglang_omni.models.ming.thinker.int4.compensation import (
    InputMoment,
    factor_inverse,
    measure_moment,
    quantize_compensated,
)
from sglang_omni.models.ming.thinker.int4.weights import (
    CLIP_RATIOS,
    dequantize_int4,
    quantize_int4,
    round_to_values,
    search_scales,
)

ROWS, COLUMNS = 64, 256


def draw_inputs(count: int, seed: int) -> Tensor:
    """Inputs whose columns depend on each other, as those of trained models do."""
    generator = torch.Generator().manual_seed(seed)
    mixed = torch.randn(32, COLUMNS, generator=torch.Generator().manual_seed(7))
    noise = torch.randn(count, COLUMNS, generator=generator) * 0.3
    return torch.randn(count, 32, generator=generator) @ mixed / 32**0.5 + noise


def draw_weight(seed: int) -> Tensor:
    return torch.randn(ROWS, COLUMNS, generator=torch.Generator().manual_seed(seed)) * 0.02


def quantize_step_by_step(weight: Tensor, moment: InputMoment, symmetric: bool) -> Tensor:
    """Solve anew, for each column, how those after it make up for all errors so far."""
    mean = moment.add_prior().double()
    original, restored = weight.double(), torch.zeros_like(weight, dtype=torch.float64)
    rest = original.clone()
    for column in range(COLUMNS):
        if column % 128 == 0:
            group = slice(column, column + 128)
            scale, zero = search_scales(
                rest[:, group].float(), symmetric, CLIP_RATIOS, mean.diagonal()[group].float()
            )
        value = round_to_values(rest[:, column : column + 1].float(), scale, zero)
        restored[:, column : column + 1] = (value - zero) * scale
        done, left = slice(0, column + 1), slice(column + 1, COLUMNS)
        if column + 1 < COLUMNS:
            errors = original[:, done] - restored[:, done]
            change = torch.linalg.solve(mean[left, left], mean[left, done] @ errors.T)
            rest[:, left] = original[:, left] + change.T
    return restored.float()


@pytest.mark.parametrize("symmetric", [True, False])
def test_it_is_the_exact_solution_of_every_step(symmetric: bool) -> None:
    weight, moment = draw_weight(1), measure_moment(draw_inputs(2000, 2))
    found = dequantize_int4(quantize_compensated(weight, moment, symmetric))
    expected = quantize_step_by_step(weight, moment, symmetric)
    # A number halfway between two values may be rounded to either, which changes those after it.
    assert ((found - expected).abs() < 1e-6).float().mean() > 0.99
    assert (found - expected).norm() < 0.01 * weight.norm()


@pytest.mark.parametrize("symmetric", [True, False])
def test_outputs_of_other_inputs_are_nearer(symmetric: bool) -> None:
    weight, others = draw_weight(3), draw_inputs(500, 4)
    moment = measure_moment(draw_inputs(2000, 5))
    errors = [
        float(((dequantize_int4(matrix) - weight) @ others.T).norm() / (weight @ others.T).norm())
        for matrix in (
            quantize_int4(weight, symmetric),
            quantize_compensated(weight, moment, symmetric),
        )
    ]
    assert errors[1] < 0.8 * errors[0]


def test_few_inputs_do_no_harm() -> None:
    weight, others = draw_weight(6), draw_inputs(500, 7)
    moment = measure_moment(draw_inputs(4, 8))
    plain = dequantize_int4(quantize_int4(weight))
    found = dequantize_int4(quantize_compensated(weight, moment, symmetric=True))
    assert ((found - weight) @ others.T).norm() < 1.02 * ((plain - weight) @ others.T).norm()


def test_a_moment_is_measured_in_parts() -> None:
    inputs = draw_inputs(8192 + 5, 9)
    moment = measure_moment(inputs.bfloat16())
    torch.testing.assert_close(
        moment.mean, inputs.bfloat16().float().T @ inputs.bfloat16().float() / len(inputs)
    )
    assert moment.count == len(inputs)


def test_the_factor_is_that_of_the_inverse() -> None:
    mean = measure_moment(draw_inputs(1000, 10)).add_prior()
    factor = factor_inverse(mean)
    assert torch.equal(factor, factor.triu())
    identity = factor.T @ factor @ mean
    assert (identity - torch.eye(COLUMNS)).abs().max() < 1e-3


def test_inputs_of_zeros_leave_a_weight_as_it_would_be() -> None:
    weight = draw_weight(13)
    moment = measure_moment(torch.zeros(64, COLUMNS))
    restored = dequantize_int4(quantize_compensated(weight, moment, symmetric=True))
    assert (restored - weight).norm() < 0.2 * weight.norm()


@pytest.mark.gpu
@pytest.mark.parametrize("symmetric", [True, False])
def test_it_is_the_same_on_a_gpu(symmetric: bool) -> None:
    weight, inputs = draw_weight(14), draw_inputs(2000, 15)
    found = [
        dequantize_int4(
            quantize_compensated(weight.to(device), measure_moment(inputs.to(device)), symmetric)
        ).cpu()
        for device in ("cpu", "cuda")
    ]
    # A number halfway between two values may be rounded to either.
    assert ((found[0] - found[1]).abs() < 1e-6).float().mean() > 0.98
    assert (found[0] - found[1]).norm() < 0.02 * weight.norm()


def test_columns_without_inputs_stay_zero() -> None:
    narrow = torch.randn(64, 48, generator=torch.Generator().manual_seed(11))
    weight = torch.nn.functional.pad(narrow, (0, 80))
    moment = measure_moment(draw_inputs(300, 12)[:, :48])
    restored = dequantize_int4(quantize_compensated(weight, moment, symmetric=True))
    assert not restored[:, 48:].any()
    assert (restored[:, :48] - narrow).norm() < 0.2 * narrow.norm()
