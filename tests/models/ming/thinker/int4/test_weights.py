"""Weights in four bits: packing is exact, and the search finds scales that round least."""

import pytest
import torch
from torch import Tensor

from sglang_omni.models.ming.thinker.int4.weights import (
    Int4Matrix,
    dequantize_int4,
    measure_int4_error,
    multiply_int4,
    pack_values,
    quantize_int4,
    stack_int4,
    tile_groups,
    unpack_values,
    untile_groups,
)
from sglang_omni.protocol.errors import CheckpointError


def draw(rows: int = 128, columns: int = 384, seed: int = 0) -> Tensor:
    return torch.randn(rows, columns, generator=torch.Generator().manual_seed(seed)) * 0.02


def test_a_word_holds_columns_that_are_32_apart() -> None:
    values = torch.zeros(64, 256, dtype=torch.uint8)
    values[5, 128 + 3], values[5, 128 + 35], values[5, 128 + 67], values[5, 128 + 99] = 1, 2, 3, 4
    packed = pack_values(values)
    assert packed.shape == (1, 2, 64, 32)
    assert packed.dtype == torch.int16
    assert packed[0, 1, 5, 3] == 0x4321
    packed[0, 1, 5, 3] = 0
    assert not packed.any()


def test_packing_loses_nothing() -> None:
    generator = torch.Generator().manual_seed(1)
    values = torch.randint(0, 16, (192, 512), generator=generator, dtype=torch.uint8)
    assert torch.equal(unpack_values(pack_values(values)), values)
    numbers = torch.randn(192, 4, generator=generator)
    tiled = tile_groups(numbers)
    assert tiled.shape == (3, 4, 64)
    assert torch.equal(untile_groups(tiled), numbers)


@pytest.mark.parametrize("symmetric", [True, False])
def test_weights_of_sixteen_levels_come_back_exactly(symmetric: bool) -> None:
    generator = torch.Generator().manual_seed(2)
    values = torch.randint(0, 16, (64, 256), generator=generator, dtype=torch.uint8)
    values[:, ::128], values[:, 1::128] = 0, 15
    scale = tile_groups(2.0 ** torch.randint(-9, -5, (64, 2), generator=generator)).bfloat16()
    zero = torch.randint(3, 12, (1, 2, 64), generator=generator, dtype=torch.int16)
    wanted = dequantize_int4(Int4Matrix(pack_values(values), scale, None if symmetric else zero))
    assert torch.equal(dequantize_int4(quantize_int4(wanted, symmetric)), wanted)


@pytest.mark.parametrize(("symmetric", "most"), [(True, 0.0975), (False, 0.096)])
def test_the_error_of_a_normal_weight_is_that_of_four_bits(symmetric: bool, most: float) -> None:
    weight = draw(256, 1024)
    matrix = quantize_int4(weight, symmetric)
    error = measure_int4_error(weight, matrix)
    # The best sixteen levels for a normal distribution, evenly spaced, give 0.1074 without groups.
    assert 0.09 < error.relative < most
    assert error.max_abs < weight.abs().max() / 4
    assert (
        error.relative
        < measure_int4_error(weight, quantize_int4(weight, symmetric, (1.0,))).relative
    )
    difference = dequantize_int4(matrix) - weight
    assert error.relative == pytest.approx(float(difference.norm() / weight.norm()))


@pytest.mark.parametrize("symmetric", [True, False])
def test_no_other_ratio_is_better_for_any_group(symmetric: bool) -> None:
    weight = draw(64, 256)

    def errors(matrix: Int4Matrix) -> Tensor:
        return (dequantize_int4(matrix) - weight).unflatten(1, (-1, 128)).square().sum(-1)

    least = errors(quantize_int4(weight, symmetric))
    for ratio in (1.0, 0.9, 0.75, 0.5):
        assert (least <= errors(quantize_int4(weight, symmetric, (ratio,)))).all()


@pytest.mark.parametrize("symmetric", [True, False])
def test_zeros_and_one_outlier_are_kept(symmetric: bool) -> None:
    weight = torch.zeros(64, 256)
    weight[3, 130] = -4.0
    restored = dequantize_int4(quantize_int4(weight, symmetric))
    # A scale in bfloat16 is within one part of 256.
    assert float(restored[3, 130]) == pytest.approx(-4.0, rel=2**-8)
    restored[3, 130] = 0.0
    assert not restored.any()


def test_a_one_sided_group_uses_all_levels_without_symmetry() -> None:
    weight = draw().abs()
    symmetric, asymmetric = (
        measure_int4_error(weight, quantize_int4(weight, form)).relative for form in (True, False)
    )
    assert asymmetric < 0.75 * symmetric


def test_the_plain_product_is_that_of_the_dequantized_weight() -> None:
    weight, x = draw(), torch.randn(3, 384)
    matrix = quantize_int4(weight)
    torch.testing.assert_close(multiply_int4(x, matrix), x @ dequantize_int4(matrix).T)
    assert multiply_int4(x.bfloat16(), matrix).dtype == torch.bfloat16


def test_a_stack_is_its_matrices() -> None:
    matrices = [quantize_int4(draw(seed=seed), symmetric=False) for seed in range(3)]
    stack = stack_int4(matrices)
    assert stack.packed.shape == (3, 2, 3, 64, 32)
    assert torch.equal(dequantize_int4(stack[2]), dequantize_int4(matrices[2]))


@pytest.mark.parametrize("shape", [(32, 128), (64, 64), (64,)])
def test_sizes_that_do_not_fit_are_refused(shape: tuple[int, ...]) -> None:
    with pytest.raises(CheckpointError, match="multiple of 64 and its columns of 128"):
        quantize_int4(torch.zeros(shape))
