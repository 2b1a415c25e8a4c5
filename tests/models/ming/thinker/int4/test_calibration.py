"""Experts are quantized by their tokens; those with too few are quantized without."""

from pathlib import Path

import pytest
import torch

from sglang_omni.models.calibration import CalibrationChat, CalibrationMessage
from sglang_omni.models.ming.prompt.tokenizer import ThinkerTokenizer
from sglang_omni.models.ming.thinker.int4 import calibration
from sglang_omni.models.ming.thinker.int4.calibration import (
    MIN_INPUTS,
    ExpertCalibrator,
    calibrate_expert,
    list_prompts,
    restore_expert,
)
from sglang_omni.models.ming.thinker.int4.weights import dequantize_int4, quantize_int4
from sglang_omni.models.ming.thinker.layerwise import Expert
from sglang_omni.pipeline.request import TextPart
from sglang_omni.protocol.errors import InvalidRequest, StartupError
from tests.testing.golden import TINY


def said(role: str, text: str) -> CalibrationMessage:
    return CalibrationMessage(role, (TextPart(text),))


def chat(question: str, *answer: str) -> CalibrationChat:
    return CalibrationChat([said("user", question), *(said("assistant", text) for text in answer)])


def draw_expert(width: int, hidden: int) -> Expert:
    generator = torch.Generator().manual_seed(1)
    shapes = (width, hidden), (width, hidden), (hidden, width)
    return Expert(*(torch.randn(*shape, generator=generator) * 0.05 for shape in shapes))


def draw_inputs(count: int, hidden: int, seed: int) -> torch.Tensor:
    mixed = torch.randn(24, hidden, generator=torch.Generator().manual_seed(0))
    generator = torch.Generator().manual_seed(seed)
    return torch.randn(count, 24, generator=generator) @ mixed / 5


# A width that no group divides, as the bundled model has, and one that a group divides.
@pytest.mark.parametrize("width", [48, 128])
@pytest.mark.parametrize("symmetric", [True, False])
def test_outputs_for_other_tokens_are_nearer(width: int, symmetric: bool) -> None:
    expert = draw_expert(width, 256)
    others = draw_inputs(200, 256, seed=3)
    errors = []
    for count in (2000, MIN_INPUTS - 1):
        matrices = calibrate_expert(expert, draw_inputs(count, 256, seed=2), symmetric)
        assert matrices["gate"].packed.shape == (2, 2, 64, 32)
        assert matrices["down"].packed.shape == (4, 1, 64, 32)
        found = restore_expert(matrices, expert)
        assert found.gate.shape == expert.gate.shape
        assert found.down.shape == expert.down.shape
        errors.append((found.run(others) - expert.run(others)).norm() / expert.run(others).norm())
    assert errors[0] < 0.8 * errors[1]


def test_an_expert_with_few_tokens_is_quantized_without_them() -> None:
    expert = draw_expert(128, 256)
    found = calibrate_expert(expert, draw_inputs(MIN_INPUTS - 1, 256, seed=2), symmetric=True)
    for part, weight in (("gate", expert.gate), ("up", expert.up), ("down", expert.down)):
        assert torch.equal(dequantize_int4(found[part]), dequantize_int4(quantize_int4(weight)))


def test_prompts_are_whole_chats_up_to_a_number_of_tokens(monkeypatch: pytest.MonkeyPatch) -> None:
    tokenizer = ThinkerTokenizer(TINY)
    one, two = list_prompts(tokenizer, [chat("Hello."), chat("Hello.", "Good morning.")])
    assert two[: len(one)] == one
    assert "Good morning." in tokenizer.decode(two)
    monkeypatch.setattr(calibration, "MAX_CHAT_TOKENS", 10)
    monkeypatch.setattr(calibration, "MAX_TOKENS", 25)
    prompts = list_prompts(tokenizer, [chat("Hello.", "Good morning.")] * 3)
    assert prompts == [two[:10]] * 2


def test_what_is_no_chat_is_refused(tmp_path: Path) -> None:
    late = CalibrationChat([said("user", "Hi."), said("system", "No.")])
    with pytest.raises(InvalidRequest, match="before all others"):
        ExpertCalibrator(TINY, [late], symmetric=True, device="cpu")
    with pytest.raises(StartupError, match="no chat"):
        ExpertCalibrator(TINY, [], symmetric=True, device="cpu")
    with pytest.raises(StartupError, match="cannot calibrate on 'nowhere'"):
        ExpertCalibrator(TINY, [chat("Hi.")], symmetric=True, device="nowhere")
