"""Compile Triton kernels for a Hopper GPU where there is none."""

from collections.abc import Iterator
from typing import Any

import pytest

from benchmarks.tools.hopper import compile_launches


@pytest.fixture
def compiled() -> Iterator[list[Any]]:
    """Kernels that were launched are compiled instead, and listed."""
    with compile_launches() as kernels:
        yield kernels
