"""How much slower this machine is than the one on which the tests' times were set.

A bound in seconds says something about the server only together with the machine. So bounds are
multiplied by `PATIENCE`, which is 1 on a machine as fast as that one or faster.

    python -m tests.testing.machine

prints how many times as long this machine takes, at least 1.
"""

import os
import time

# A million additions in Python took so long on that machine (two cores of an AMD EPYC).
REFERENCE_S = 0.031
MAX_PATIENCE = 4.0


def measure_slowness(rounds: int = 8, additions: int = 200_000) -> float:
    """Return the time of additions in Python relative to the reference, the best of all rounds.

    The best, because others disturb a round only by making it longer.
    """
    best_s = min(_time_additions(additions) for _ in range(rounds))
    return best_s / (REFERENCE_S * additions / 1_000_000)


def compute_patience(slowness: float, asked: float) -> float:
    """Return what bounds are multiplied by: the machine's slowness, or more if `asked`."""
    return max(1.0, asked, min(slowness, MAX_PATIENCE))


def _time_additions(count: int) -> float:
    total, began = 0, time.perf_counter()
    for number in range(count):
        total += number
    return time.perf_counter() - began


# `SGLANG_OMNI_PATIENCE` asks for more on a machine that others keep busy.
PATIENCE = compute_patience(measure_slowness(), float(os.environ.get("SGLANG_OMNI_PATIENCE", "1")))

if __name__ == "__main__":
    print(f"{max(1.0, measure_slowness()):.2f}")
