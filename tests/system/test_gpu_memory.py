"""The GPU memory that an engine counts."""

import pytest
import torch

from sglang_omni.system.gpu_memory import count_gpu_memory

GIB = 1 << 30


@pytest.mark.skipif(torch.cuda.is_available(), reason="a GPU is there")
def test_without_a_gpu_nothing_is_counted() -> None:
    assert count_gpu_memory() == {}


@pytest.mark.gpu
def test_the_peak_stays_after_what_needed_it() -> None:
    before = torch.cuda.max_memory_reserved()
    torch.empty(GIB, dtype=torch.uint8, device="cuda")
    torch.cuda.empty_cache()
    assert count_gpu_memory()["gpu_peak_bytes"] >= max(before, GIB)
