"""What is compared is the output of a layer, and finer forms are nearer to it."""

import json
from pathlib import Path

import pytest
import torch

from benchmarks.thinker.int4_error import (
    CALIBRATED_FORMS,
    FORMS,
    draw_heavy_tails,
    measure_chats,
    measure_layer,
)
from sglang_omni.models.ming.thinker.layerwise import Expert
from tests.entrypoints.cli.quantised import write_wide_checkpoint


def draw_expert(width: int, hidden: int) -> Expert:
    gate, up, down = (
        torch.randn(*shape) * 0.02 for shape in ((width, hidden), (width, hidden), (hidden, width))
    )
    return Expert(gate, up, down)


def test_finer_forms_are_nearer() -> None:
    torch.manual_seed(0)
    # A width that no group divides, as the bundled model has.
    experts = [draw_expert(48, 256) for _ in range(3)]
    errors = measure_layer(experts, torch.rand(8, 3), torch.randn(8, 256))
    assert errors.keys() == FORMS.keys()
    assert 0 < errors["fp8"] < errors["int4, asymmetric"] < errors["int4"]
    assert errors["int4"] < errors["int4, no search"] < 0.3


def test_weights_that_four_bits_hold_have_no_error() -> None:
    shapes = (64, 128), (64, 128), (128, 64)
    signs = [(torch.randint(0, 2, shape) * 2.0 - 1) * 7 / 64 for shape in shapes]
    errors = measure_layer([Expert(*signs)], torch.ones(4, 1), torch.randn(4, 128))
    assert errors["int4"] < 1e-6
    assert errors["int4, no search"] > 0.01


def test_heavy_tails_have_the_same_variance() -> None:
    torch.manual_seed(1)
    drawn = draw_heavy_tails(torch.empty(400, 400))
    assert 0.9 < drawn.var() < 1.1
    assert drawn.abs().max() > 6


@pytest.mark.extended
def test_a_checkpoint_is_measured_with_the_tokens_of_chats(tmp_path: Path) -> None:
    write_wide_checkpoint(tmp_path / "bf16")
    files = tmp_path / "calibration.jsonl", tmp_path / "chats.jsonl"
    for start, file in zip((0, 500), files, strict=True):
        questions = (f"What is {number} + {number}?" for number in range(start, start + 30))
        chats = ({"messages": [{"role": "user", "content": text}]} for text in questions)
        file.write_text("".join(json.dumps(chat) + "\n" for chat in chats), encoding="utf-8")
    with torch.inference_mode():
        layers = dict(measure_chats(tmp_path / "bf16", *files, "cpu"))
    assert list(layers) == ["layers.1", "layers.2"]
    for errors in layers.values():
        assert errors.keys() == {*FORMS, *CALIBRATED_FORMS}
        assert 0 < errors["fp8"] < errors["int4, calibrated"] < errors["int4"] < 0.3
