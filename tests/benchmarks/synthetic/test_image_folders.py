"""Image folders at any shapes are loaded as a checkpoint's are."""

from dataclasses import replace
from pathlib import Path

import pytest
import torch

from benchmarks.images.shapes import SMALL, random_modules
from benchmarks.synthetic.image_folders import remove_image_folders, write_image_folders
from sglang_omni.models.ming.config import read_encoder_config
from sglang_omni.models.ming.image.config import has_image_output
from sglang_omni.models.ming.image.loading import load_image_modules
from sglang_omni.models.ming.tiny.write import write_tiny_checkpoint

CPU = torch.device("cpu")


@pytest.fixture
def checkpoint(tmp_path: Path) -> Path:
    write_tiny_checkpoint(tmp_path / "tiny")
    return tmp_path / "tiny"


def test_what_is_written_is_loaded(checkpoint: Path) -> None:
    shapes = replace(SMALL, thinker_width=read_encoder_config(checkpoint).hidden_size)
    write_image_folders(checkpoint, shapes, CPU)
    loaded = load_image_modules(checkpoint, CPU, torch.bfloat16)
    written = random_modules(shapes, CPU, torch.bfloat16)
    for module, expected in (
        (loaded.connector, written.connector),
        (loaded.transformer, written.transformer),
    ):
        tensors = dict(module.named_parameters())
        assert tensors
        for name, tensor in expected.named_parameters():
            assert torch.equal(tensors[name], tensor), name
    assert loaded.query_rows.shape == (shapes.head.num_queries, shapes.thinker_width)
    assert loaded.glyphs is None


def test_a_checkpoint_without_its_image_folders_draws_nothing(checkpoint: Path) -> None:
    assert has_image_output(checkpoint)
    remove_image_folders(checkpoint)
    assert not has_image_output(checkpoint)
