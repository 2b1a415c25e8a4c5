"""Rounded weights are the nearest ones, and rounding twice changes nothing."""

from pathlib import Path

import pytest
import torch
from safetensors import safe_open
from safetensors.torch import load_file, save_file

from cookbook.ming_mini_2.rounding import round_checkpoint, round_mantissas


@pytest.mark.parametrize("bits", [3, 5, 6, 7])
def test_each_number_becomes_the_nearest(bits: int) -> None:
    numbers = torch.randn(4096, generator=torch.Generator().manual_seed(1)).bfloat16()
    rounded = round_mantissas(numbers, bits).double()
    # Steps of the mantissa at each number's own power of two.
    step = 2.0 ** (numbers.double().frexp().exponent - 1 - bits).double()
    assert torch.equal(rounded, torch.round(numbers.double() / step) * step)


def test_signs_zeros_and_powers_of_two_stay() -> None:
    numbers = torch.tensor([0.0, -0.0, 1.0, -1.0, 0.5, -65536.0, 2.0**-100]).bfloat16()
    assert torch.equal(round_mantissas(numbers).view(torch.int16), numbers.view(torch.int16))


def test_a_number_just_below_a_power_of_two_becomes_it() -> None:
    below = torch.tensor([1.9921875, -0.99609375]).bfloat16()
    assert round_mantissas(below).tolist() == [2.0, -1.0]


def test_a_checkpoint_is_rounded_once(tmp_path: Path) -> None:
    (tmp_path / "talker").mkdir()
    path = tmp_path / "talker" / "model.safetensors"
    seeded = torch.Generator().manual_seed(2)
    weights = torch.randn(30, 20, generator=seeded).bfloat16()
    scale = torch.randn(20, generator=seeded)
    save_file({"weights": weights, "scale": scale}, path, {"format": "pt"})
    round_checkpoint(tmp_path)
    first = path.read_bytes()
    tensors = load_file(path)
    assert torch.equal(tensors["weights"], round_mantissas(weights))
    assert not torch.equal(tensors["weights"], weights)
    assert torch.equal(tensors["scale"], scale)
    round_checkpoint(tmp_path)
    assert path.read_bytes() == first
    with safe_open(path, "pt") as file:
        assert file.metadata() == {"format": "pt"}
