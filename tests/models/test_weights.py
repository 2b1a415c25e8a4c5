"""Reading a checkpoint folder: sharded or not, complete or refused by name."""

import json
from pathlib import Path

import pytest
import torch
from safetensors.torch import save_file
from torch import nn

from sglang_omni.models.checkpoint_files import INDEX_FILE, WEIGHTS_FILE
from sglang_omni.models.weights import TensorFolder, load_strict
from sglang_omni.protocol.errors import CheckpointError

FIRST, SECOND = "model-00001-of-00002.safetensors", "model-00002-of-00002.safetensors"


@pytest.fixture
def sharded(tmp_path: Path) -> Path:
    save_file({"a.weight": torch.ones(2, 3)}, tmp_path / FIRST)
    save_file({"a.bias": torch.zeros(2), "b": torch.ones(1)}, tmp_path / SECOND)
    weight_map = {"a.weight": FIRST, "a.bias": SECOND, "b": SECOND}
    (tmp_path / INDEX_FILE).write_text(json.dumps({"weight_map": weight_map}))
    return tmp_path


def test_shards_read_as_one_folder(sharded: Path) -> None:
    tensors = TensorFolder(sharded)
    assert sorted(tensors) == ["a.bias", "a.weight", "b"]
    assert torch.equal(tensors["a.weight"], torch.ones(2, 3))


def test_one_file_needs_no_index(tmp_path: Path) -> None:
    save_file({"a": torch.ones(1)}, tmp_path / WEIGHTS_FILE)
    assert list(TensorFolder(tmp_path)) == ["a"]


def test_a_missing_shard_is_named(sharded: Path) -> None:
    (sharded / SECOND).unlink()
    with pytest.raises(CheckpointError, match=SECOND):
        TensorFolder(sharded)


def test_an_index_that_lies_is_refused(sharded: Path) -> None:
    save_file({"b": torch.ones(1)}, sharded / SECOND)
    with pytest.raises(CheckpointError, match=r"a\.bias"):
        TensorFolder(sharded)


def test_an_empty_folder_is_refused(tmp_path: Path) -> None:
    with pytest.raises(CheckpointError, match=WEIGHTS_FILE):
        TensorFolder(tmp_path)


def test_a_module_takes_its_tensors_and_lists_what_it_ignores(sharded: Path) -> None:
    layer = nn.Linear(3, 2)
    report = load_strict(layer, TensorFolder(sharded), prefix="a.")
    assert (report.loaded, report.ignored) == (2, ())
    assert layer.weight.eq(1).all()
    holder = nn.ModuleDict({"a": layer})
    report = load_strict(holder, TensorFolder(sharded), ignore=lambda name: name == "b")
    assert report.ignored == ("b",)


def test_a_missing_tensor_is_named(sharded: Path) -> None:
    with pytest.raises(CheckpointError, match=r"c\.bias"):
        load_strict(nn.ModuleDict({"c": nn.Linear(1, 1)}), TensorFolder(sharded))


def test_an_unexpected_tensor_is_named(sharded: Path) -> None:
    with pytest.raises(CheckpointError, match="'b'"):
        load_strict(nn.ModuleDict({"a": nn.Linear(3, 2)}), TensorFolder(sharded))


def test_a_wrong_shape_is_named(sharded: Path) -> None:
    with pytest.raises(CheckpointError, match=r"a\.weight.*\[2, 3\].*\[2, 4\]"):
        load_strict(nn.Linear(4, 2), TensorFolder(sharded), prefix="a.")
