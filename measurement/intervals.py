"""95 % confidence intervals of measured shares and rates."""

import math
from collections.abc import Sequence

import numpy as np

Z = 1.96
DRAWS = 1000


def wilson_interval(right: int, count: int) -> tuple[float, float]:
    """Return the interval of a share, by Wilson's score."""
    if count == 0:
        return 0.0, 1.0
    share, weight = right / count, Z * Z / count
    middle = (share + weight / 2) / (1 + weight)
    half = Z * math.sqrt(share * (1 - share) / count + weight / (4 * count)) / (1 + weight)
    return max(0.0, middle - half), min(1.0, middle + half)


def bootstrap_interval(pairs: Sequence[tuple[float, float]]) -> tuple[float, float]:
    """Return the interval of a rate: the sum of the first numbers over the sum of the second."""
    table, rng = np.array(pairs), np.random.default_rng(0)
    sums = table[rng.integers(len(table), size=(DRAWS, len(table)))].sum(axis=1)
    low, high = np.quantile(sums[:, 0] / sums[:, 1], (0.025, 0.975))
    return float(low), float(high)
