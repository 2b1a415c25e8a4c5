"""Tensors read without torch are those that torch reads."""

from pathlib import Path

import numpy as np
import pytest
import torch
from safetensors.torch import save_file

from sglang_omni.models.raw_tensor import read_raw_tensor
from sglang_omni.protocol.errors import CheckpointError


@pytest.fixture
def file(tmp_path: Path) -> Path:
    path = tmp_path / "model.safetensors"
    values = torch.arange(12, dtype=torch.float32).reshape(3, 4) / 7
    save_file({"a": values, "b": values.bfloat16() * 3, "c": values.half()}, path)
    return path


def test_float32_values_and_bfloat16_bits(file: Path) -> None:
    values = torch.arange(12, dtype=torch.float32).reshape(3, 4) / 7
    assert np.array_equal(read_raw_tensor(file, "a"), values.numpy())
    bits = read_raw_tensor(file, "b")
    assert torch.equal(torch.from_numpy(bits.copy()).view(torch.bfloat16), values.bfloat16() * 3)


@pytest.mark.parametrize(("name", "problem"), [("d", "is missing"), ("c", "must be float32")])
def test_what_cannot_be_read_is_named(file: Path, name: str, problem: str) -> None:
    with pytest.raises(CheckpointError, match=f"'{name}' {problem}"):
        read_raw_tensor(file, name)


def test_a_file_that_is_cut_is_refused(file: Path) -> None:
    file.write_bytes(file.read_bytes()[:-40])
    with pytest.raises(CheckpointError, match="cannot read"):
        read_raw_tensor(file, "b")
