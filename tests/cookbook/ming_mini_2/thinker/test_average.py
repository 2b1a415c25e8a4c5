"""Averages of checkpoints: which shares hold for which tensors."""

from pathlib import Path

import pytest
import torch
from safetensors.torch import load_file, save_file

from cookbook.ming_mini_2.thinker.average import Share, average, parse_share
from sglang_omni.models.checksums import CHECKSUM_FILE

HEARD = ("audio.blocks.0.mlp.0.weight", "model.model.layers.1.mlp.audio_gate.weight")
OTHER = ("model.model.norm.weight", "vision.merger.norm.bias")
FILE = "model-00001-of-00001.safetensors"


def checkpoint(folder: Path, value: float, size: int = 2) -> Path:
    """Write a checkpoint whose weights all have one value."""
    folder.mkdir()
    weights = {name: torch.full((size,), value, dtype=torch.bfloat16) for name in HEARD + OTHER}
    save_file(weights, folder / FILE)
    (folder / "config.json").write_text(f'{{"value": {value}}}')
    return folder


def test_hearing_has_shares_of_its_own(tmp_path: Path) -> None:
    values = {"a": 1, "b": 2, "older": 8}
    a, b, older = (checkpoint(tmp_path / name, value) for name, value in values.items())
    output = tmp_path / "output"
    average([Share(0.25, a), Share(0.75, b)], [Share(0.5, b), Share(0.5, older)], output)
    found = load_file(output / FILE)
    assert [found[name].tolist() for name in OTHER] == [[1.75, 1.75]] * len(OTHER)
    assert [found[name].tolist() for name in HEARD] == [[5, 5]] * len(HEARD)
    assert (output / "config.json").read_text() == (a / "config.json").read_text()
    assert FILE in (output / CHECKSUM_FILE).read_text()


def test_checkpoints_that_do_not_agree_are_refused(tmp_path: Path) -> None:
    a, b = checkpoint(tmp_path / "a", 1), checkpoint(tmp_path / "b", 1, size=3)
    with pytest.raises(ValueError, match="do not agree on"):
        average([Share(0.5, a), Share(0.5, b)], [Share(1, a)], tmp_path / "output")
    with pytest.raises(ValueError, match="add up to 1"):
        average([Share(0.5, a)], [Share(1, a)], tmp_path / "output")


@pytest.mark.parametrize("text", ["0.5", "0:a", "half:a"])
def test_a_share_is_a_number_and_a_folder(text: str) -> None:
    with pytest.raises(ValueError, match=r"is not a share|could not convert"):
        parse_share(text)
