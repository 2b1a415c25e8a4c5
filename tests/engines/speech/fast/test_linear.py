"""The fused linear kernel, and the row-wise ones, against the plain rules."""

import pytest
import torch
import torch.nn.functional as F
from torch import Tensor

from sglang_omni.kernels.split_k import Workspace
from sglang_omni.models.ming.speech.kernels.linear import (
    FusedNormInput,
    LinearTile,
    linear,
    prepare_norm_input,
)
from sglang_omni.models.ming.speech.kernels.rows import compute_stop_probability, rms_norm, silu_mul
from tests.engines.speech.fast.conftest import INTERPRETED, Draw
from tests.testing.golden import assert_close

EPS = 1e-6
# Rows, columns and depth: each tile below ends inside the third shape in all three. The large ones
# add nothing but time where tiles run one after the other.
SHAPES = [(1, 48, 64), (5, 40, 96), (37, 40, 72)]
SHAPES += [] if INTERPRETED else [(37, 64, 128), (74, 96, 80)]
TILES = [LinearTile(16, 16, 32), LinearTile(32, 32, 64)]


@pytest.fixture
def space(device: torch.device) -> Workspace:
    return Workspace(1 << 16, device)


def plain_norm(x: Tensor, gain: Tensor) -> Tensor:
    wide = x.float()
    return (wide * torch.rsqrt(wide.square().mean(-1, keepdim=True) + EPS) * gain.float()).to(x)


@pytest.mark.parametrize("shape", SHAPES, ids=str)
@pytest.mark.parametrize("tile", TILES, ids=["small", "large"])
@pytest.mark.parametrize("gelu", [False, True])
def test_product_bias_and_gelu(
    draw: Draw,
    tolerance: float,
    space: Workspace,
    shape: tuple[int, int, int],
    tile: LinearTile,
    gelu: bool,
) -> None:
    m, n, k = shape
    x, weight, bias = draw(m, k), draw(n, k, scale=k**-0.5), draw(n)
    out = x.new_empty(m, n)
    linear(x, weight, out, tile, space, bias=bias, gelu=gelu)
    plain = F.linear(x.float(), weight.float(), bias.float())
    expected = F.gelu(plain, approximate="tanh") if gelu else plain
    assert_close(out.float(), expected, tolerance)


@pytest.mark.parametrize("shape", SHAPES, ids=str)
@pytest.mark.parametrize("split", [1, 2, 3])
def test_a_split_sum_is_added_to_what_was_there(
    draw: Draw, tolerance: float, space: Workspace, shape: tuple[int, int, int], split: int
) -> None:
    m, n, k = shape
    x, weight, bias, residual = draw(m, k), draw(n, k, scale=k**-0.5), draw(n), draw(m, n)
    expected = residual.float() + F.linear(x.float(), weight.float(), bias.float())
    tile = LinearTile(16, 16, 16, split=split)
    linear(x, weight, residual, tile, space, bias=bias, add=True)
    assert_close(residual.float(), expected, tolerance)
    assert not space.arrived.any(), "the next product would count from here"


@pytest.mark.parametrize("shape", SHAPES, ids=str)
def test_a_gated_product_reads_gate_and_up(
    draw: Draw, tolerance: float, space: Workspace, shape: tuple[int, int, int]
) -> None:
    m, n, k = shape
    x, weight = draw(m, k), draw(2 * n, k, scale=k**-0.5)
    out = x.new_empty(m, n)
    linear(x, weight, out, TILES[0], space, gated=True)
    gate, up = F.linear(x.float(), weight.float()).chunk(2, dim=-1)
    assert_close(out.float(), F.silu(gate) * up, tolerance)


@pytest.mark.parametrize("shape", SHAPES, ids=str)
@pytest.mark.parametrize("split", [1, 3])
def test_a_norm_is_carried_from_one_product_to_the_next(
    draw: Draw, tolerance: float, space: Workspace, shape: tuple[int, int, int], split: int
) -> None:
    m, n, k = shape
    x, into, residual = draw(m, k), draw(n, k, scale=k**-0.5), draw(m, n)
    gain, weight, bias = draw(n), draw(k, n, scale=n**-0.5), draw(k)
    stream = residual.float() + F.linear(x.float(), into.float())
    tile = LinearTile(16, 16, 16, split=split)
    carried = linear(x, into, residual, tile, space, add=True, next_norm=(gain, EPS))
    assert_close(residual.float(), stream, tolerance)
    assert carried is not None
    out = linear_of(carried, weight, bias, space)
    expected = F.linear(plain_norm(residual, gain).float(), weight.float(), bias.float())
    assert_close(out.float(), expected, tolerance)
    first = linear_of(prepare_norm_input(residual, gain, EPS), weight, bias, space)
    assert_close(first.float(), expected, tolerance)


def linear_of(carried: FusedNormInput, weight: Tensor, bias: Tensor, space: Workspace) -> Tensor:
    out = carried.scaled.new_empty(len(carried.scaled), len(weight))
    linear(carried, weight, out, TILES[0], space, bias=bias)
    return out


@pytest.mark.parametrize("shape", SHAPES, ids=str)
def test_a_carried_norm_reaches_gate_and_up(
    draw: Draw, tolerance: float, space: Workspace, shape: tuple[int, int, int]
) -> None:
    m, n, k = shape
    x, weight, gain = draw(m, k), draw(2 * n, k, scale=k**-0.5), draw(k)
    out = x.new_empty(m, n)
    linear(prepare_norm_input(x, gain, EPS), weight, out, TILES[1], space, gated=True)
    rows = plain_norm(x, gain).float()
    gate, up = F.linear(rows, weight.float()).chunk(2, dim=-1)
    assert_close(out.float(), F.silu(gate) * up, tolerance)


@pytest.mark.parametrize("width", [24, 64, 200])
def test_rows_are_normalised_after_the_shift(draw: Draw, tolerance: float, width: int) -> None:
    x, gain, shift = draw(7, width), draw(width), draw(width).float()
    assert_close(rms_norm(x, gain, EPS).float(), plain_norm(x, gain).float(), tolerance)
    shifted = plain_norm(x.float() + shift, gain)
    assert_close(rms_norm(x, gain, EPS, shift).float(), shifted, tolerance)


def test_silu_times_up(draw: Draw, tolerance: float) -> None:
    x = draw(5, 2 * 1100)
    gate, up = x.float().chunk(2, dim=-1)
    assert_close(silu_mul(x).float(), F.silu(gate) * up, tolerance)


def test_the_stop_head_gives_the_second_probability(draw: Draw, tolerance: float) -> None:
    x, weight, bias = draw(9, 80), draw(2, 80, scale=0.3), draw(2)
    expected = F.softmax(F.linear(x, weight, bias).float(), dim=-1)[:, 1]
    assert_close(compute_stop_probability(x, weight, bias), expected, tolerance)
