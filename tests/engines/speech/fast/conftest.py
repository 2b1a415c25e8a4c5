"""Kernel tests run on a GPU, or without one under Triton's interpreter (TRITON_INTERPRET=1)."""

import os
from collections.abc import Callable

import pytest
import torch

from sglang_omni.models.ming.config import DiTConfig
from sglang_omni.models.ming.speech import dit

INTERPRETED = os.environ.get("TRITON_INTERPRET") == "1"

Draw = Callable[..., torch.Tensor]


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    if INTERPRETED:
        return
    skip = pytest.mark.skip(reason="needs a GPU or TRITON_INTERPRET=1")
    for item in items:
        if item.path.parent.name == "fast":
            item.add_marker(pytest.mark.gpu if torch.cuda.is_available() else skip)


@pytest.fixture(scope="session")
def device() -> torch.device:
    return torch.device("cpu" if INTERPRETED else "cuda")


# The interpreter multiplies bfloat16 matrices as the integers that hold them.
DTYPES = [torch.float32] if INTERPRETED else [torch.float32, torch.bfloat16]


@pytest.fixture(params=DTYPES, ids=str)
def dtype(request: pytest.FixtureRequest) -> torch.dtype:
    return request.param


@pytest.fixture
def draw(device: torch.device, dtype: torch.dtype) -> Draw:
    """Random tensors in the test's dtype, the same ones every time."""
    generator = torch.Generator().manual_seed(0)

    def normal(*shape: int, scale: float = 1.0) -> torch.Tensor:
        return (scale * torch.randn(*shape, generator=generator)).to(device, dtype)

    return normal


@pytest.fixture
def tolerance(dtype: torch.dtype) -> float:
    """Relative to the largest value: float32 sums in another order, bfloat16 rounds twice."""
    return 2e-5 if dtype == torch.float32 else 2e-2


@pytest.fixture
def stack(device: torch.device, dtype: torch.dtype) -> dit.BlockStack:
    """A small flow model of random weights."""
    config = DiTConfig(in_channels=16, hidden_size=64, depth=3, num_heads=2, mlp_ratio=4)
    torch.manual_seed(0)
    made = dit.BlockStack(config, config.in_channels)
    for parameter in made.parameters():
        parameter.data.normal_(std=1.0 if parameter.ndim == 1 else parameter.shape[-1] ** -0.5)
    return made.to(device, dtype)
