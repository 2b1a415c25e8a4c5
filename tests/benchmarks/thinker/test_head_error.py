"""The error of a head in FP8: of its weights, and of the states where those are rounded too."""

from pathlib import Path

import pytest
import torch

from benchmarks.thinker.head_error import measure_checkpoint, measure_errors, restore_rows
from benchmarks.thinker.tune_small_batch_gemm import head_candidates
from sglang_omni.entrypoints.cli.calibration_file import read_chats
from sglang_omni.models.ming.thinker.fp8_layout import BLOCK
from sglang_omni.models.ming.thinker.small_batch_gemm_triton import HEAD_TILES
from tests.entrypoints.cli.quantised import write_wide_checkpoint


def test_rounded_states_add_to_the_error_of_rounded_weights() -> None:
    generator = torch.Generator().manual_seed(0)
    weight, x = (torch.randn(rows, 512, generator=generator) for rows in (300, 16))
    errors = measure_errors(weight, x)
    assert 0.02 < errors["weights"] < errors["weights and rows"] < 0.05
    # Each block of a row has a scale of its own.
    x[:, :BLOCK] *= 1e4
    assert ((restore_rows(x) - x).abs() <= x.abs() / 16 + 0.02).all()


@pytest.mark.extended
def test_the_answers_of_a_checkpoint_are_compared(tmp_path: Path) -> None:
    write_wide_checkpoint(tmp_path / "bf16")
    chats = tmp_path / "chats.jsonl"
    chats.write_text('{"messages": [{"role": "user", "content": "Hello"}]}\n', encoding="utf-8")
    with torch.inference_mode():
        report = measure_checkpoint(tmp_path / "bf16", read_chats(chats), max_tokens=4)
    assert report["chats"] == 1
    assert report["tokens"] > 0
    assert 0 < report["errors"]["chats"]["weights"] < 0.05


def test_the_tilings_of_the_head_are_among_those_that_are_tried() -> None:
    for rows, tile in HEAD_TILES.items():
        assert tile in head_candidates(rows)
        assert tile.split == 1
