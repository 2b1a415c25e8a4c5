"""Kernels that a profiler recorded, and the cost of each."""

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise


@dataclass(frozen=True)
class KernelEvent:
    """A kernel, copy or fill of the GPU: its name and its end in microseconds."""

    name: str
    end: float


def kernel_costs_us(kernels: Sequence[KernelEvent]) -> list[float]:
    """Return the microseconds from the end of each kernel to that of the next.

    They are the costs of all kernels but the first. With programmatic dependent launch a kernel
    starts while the previous one still runs, so durations would count time twice. The gap before a
    kernel is part of its cost.
    """
    return [kernel.end - previous.end for previous, kernel in pairwise(kernels)]
