"""Which rows the norm of a decode step takes, and which it leaves to SGLang's."""

from typing import Any

import pytest
import torch
from sglang.srt.layers.layernorm import RMSNorm
from torch import Tensor

from sglang_omni.models.ming.thinker import decode_norm as step_norm
from sglang_omni.models.ming.thinker.decode_norm import StepNorm
from sglang_omni.models.ming.thinker.small_batch_gemm_triton import MAX_ROWS

HIDDEN = 8


@pytest.fixture
def taken(monkeypatch: pytest.MonkeyPatch) -> list[Any]:
    """The parts that our kernel was given, and "theirs" where SGLang's was asked."""
    met: list[Any] = []

    def ours(
        parts: Tensor, residual: Tensor, gain: Tensor, eps: float, *, pdl: bool
    ) -> tuple[Tensor, Tensor]:
        assert pdl
        assert gain.shape == (HIDDEN,)
        assert eps == 1e-6
        met.append(parts)
        return residual, residual

    monkeypatch.setattr(step_norm, "sum_norm", ours)
    monkeypatch.setattr(RMSNorm, "forward_cuda", lambda *_: met.append("theirs"))
    return met


def norm_of(monkeypatch: pytest.MonkeyPatch, pdl: bool) -> StepNorm:
    """A norm on a card where a decode step may or may not have kernels of its own."""
    monkeypatch.setattr(step_norm, "supports_decode_kernels", lambda: pdl)
    return StepNorm(HIDDEN, eps=1e-6)


def test_few_rows_are_ours_summed_or_not(monkeypatch: pytest.MonkeyPatch, taken: list[Any]) -> None:
    norm = norm_of(monkeypatch, pdl=True)
    for rows in (1, MAX_ROWS):
        x, parts = torch.randn(rows, HIDDEN), torch.randn(rows, 9, HIDDEN)
        norm.forward_cuda(x, x)
        norm.forward_cuda(parts, x)
        whole, unsummed = taken[-2:]
        assert torch.equal(whole, x[:, None])
        assert unsummed is parts


def test_other_rows_are_sglangs(monkeypatch: pytest.MonkeyPatch, taken: list[Any]) -> None:
    few, many = torch.randn(2, HIDDEN), torch.randn(MAX_ROWS + 1, HIDDEN)
    norm = norm_of(monkeypatch, pdl=True)
    norm.forward_cuda(few)
    norm.forward_cuda(many, many)
    norm.forward_cuda(few[:0], few[:0])
    norm.forward_cuda(few, few, few)
    norm_of(monkeypatch, pdl=False).forward_cuda(few, few)
    assert taken == ["theirs"] * 5
