"""The talker of a run between its own weights and a checkpoint's."""

from pathlib import Path

import pytest
import torch
from safetensors.torch import save_file

from cookbook.ming_mini.train_talker import TALKER
from cookbook.ming_mini.weights import load_pieces, save_pieces
from cookbook.ming_mini_2.voices.average import average_talker


@pytest.fixture
def run(tmp_path: Path) -> Path:
    folder = tmp_path / "run"
    (folder / "speech").mkdir(parents=True)
    save_pieces({"one": torch.full((3,), 4.0), "two": torch.ones(2)}, folder / "speech", TALKER)
    return folder


def checkpoint(folder: Path, size: int) -> Path:
    (folder / "talker").mkdir(parents=True)
    weights = {"one": torch.zeros(3), "two": torch.ones(size), "computed": torch.ones(1)}
    save_file(
        {name: tensor.bfloat16() for name, tensor in weights.items()},
        folder / "talker" / "model.safetensors",
    )
    return folder


def test_a_share_of_the_run_and_the_rest_of_the_checkpoint(run: Path, tmp_path: Path) -> None:
    average_talker(run, checkpoint(tmp_path / "packed", size=2), 0.25)
    found = load_pieces(run / "speech", TALKER)
    assert found["one"].tolist() == [1.0] * 3
    assert found["two"].tolist() == [1.0] * 2
    assert found.keys() == {"one", "two"}


def test_talkers_of_other_shapes_are_refused(run: Path, tmp_path: Path) -> None:
    with pytest.raises(ValueError, match="do not agree on two"):
        average_talker(run, checkpoint(tmp_path / "packed", size=3), 0.5)


@pytest.mark.parametrize("share", [0.0, 1.0])
def test_a_share_lies_between_nothing_and_all(run: Path, tmp_path: Path, share: float) -> None:
    with pytest.raises(ValueError, match="not between"):
        average_talker(run, checkpoint(tmp_path / "packed", size=2), share)
