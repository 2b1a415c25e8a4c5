"""Kernels that a profiler saw, and what each of them cost."""

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise


@dataclass(frozen=True)
class Ran:
    """A kernel, copy or fill that ran: its name, and when it ended, in microseconds."""

    name: str
    end: float


def spent(kernels: Sequence[Ran]) -> list[float]:
    """Microseconds from the end of each kernel to that of the next: what all but the first cost.

    Chained kernels start while the one in front still runs, and would be counted twice by their
    own durations; the gap in front of a kernel is part of its cost.
    """
    return [one.end - before.end for before, one in pairwise(kernels)]
