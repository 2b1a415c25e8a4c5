"""Greedy answers in four bits are compared with those in bfloat16 token by token."""

from pathlib import Path

import pytest
import torch

from benchmarks.thinker.int4_tokens import (
    CHATS,
    Answer,
    answer_greedily,
    compare_answers,
    compute_forced_logits,
    find_first_difference,
    list_defects,
    load_quantized,
)
from sglang_omni.entrypoints.cli.calibration_file import read_chats
from sglang_omni.entrypoints.cli.quantize import quantize
from sglang_omni.models.base import WeightForm
from sglang_omni.models.ming.thinker.hf_config import MingConfig
from sglang_omni.models.ming.thinker.reference import ThinkerReference, load_reference
from tests.entrypoints.cli.quantised import write_wide_checkpoint

PROMPT = tuple(range(300, 320))


@pytest.fixture(scope="module")
def source(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("tokens") / "bf16"
    write_wide_checkpoint(folder)
    return folder


@pytest.fixture(scope="module", params=[WeightForm.INT4, WeightForm.INT4_ASYMMETRIC])
def quantized(source: Path, request: pytest.FixtureRequest) -> Path:
    target = source.parent / request.param
    quantize(source, target, request.param)
    return target


@pytest.fixture(scope="module")
def model(source: Path) -> ThinkerReference:
    return load_reference(source, MingConfig.from_pretrained(source).llm_config)


def test_forced_logits_are_those_of_the_answer_itself(model: ThinkerReference) -> None:
    with torch.inference_mode():
        answer = answer_greedily(model, PROMPT, max_tokens=6, end=-1)
        assert len(answer.tokens) == 6
        logits = compute_forced_logits(model, answer)
    torch.testing.assert_close(logits, answer.logits, rtol=1e-3, atol=1e-3)
    assert find_first_difference(answer, logits) is None


def test_an_answer_ends_with_its_end(model: ThinkerReference) -> None:
    with torch.inference_mode():
        whole = answer_greedily(model, PROMPT, max_tokens=6, end=-1)
        end = whole.tokens[2]
        answer = answer_greedily(model, PROMPT, max_tokens=6, end=end)
    assert answer.tokens == whole.tokens[: whole.tokens.index(end) + 1]


def test_the_first_difference_is_where_greedy_decoding_leaves(
    model: ThinkerReference, quantized: Path
) -> None:
    rounded = load_quantized(quantized)
    with torch.inference_mode():
        answer = answer_greedily(model, PROMPT, max_tokens=12, end=-1)
        own = answer_greedily(rounded, PROMPT, max_tokens=12, end=-1).tokens
        place = find_first_difference(answer, compute_forced_logits(rounded, answer))
    assert place is not None
    assert own[:place] == answer.tokens[:place]
    assert own[place] != answer.tokens[place]


def test_differences_are_listed_with_their_gaps(source: Path, quantized: Path) -> None:
    with torch.inference_mode():
        report = compare_answers(source, quantized, read_chats(CHATS)[:6], max_tokens=8)
    assert report["chats"] == 6
    assert 6 <= report["tokens"] <= 6 * 8
    # Random weights decide between tokens by small gaps.
    gaps = [one["gap"] for one in report["differences"]]
    assert gaps
    assert gaps == sorted(gaps, reverse=True)
    assert min(gaps) >= 0
    assert report["noise"] > 0
    assert not list(list_defects(report, max_ratio=100.0))
    assert len(list(list_defects(report, max_ratio=-1.0))) == len(gaps)


def test_a_gap_is_the_first_models_own() -> None:
    logits = torch.tensor([[0.0, 3.0, 1.0], [2.0, 0.0, 1.5]])
    answer = Answer((7,), (1, 0), logits)
    assert find_first_difference(answer, torch.tensor([[0.0, 9.0, 1.0], [0.0, 0.0, 1.0]])) == 1
    assert find_first_difference(answer, torch.tensor([[5.0, 1.0, 1.0], [0.0, 0.0, 1.0]])) == 0
