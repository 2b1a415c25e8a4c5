"""Policies for batching and splitting requests over forward passes. Pure functions."""

from collections.abc import Iterable
from itertools import pairwise


def select_batch(waiting: Iterable[tuple[str, float]], budget: float) -> list[str]:
    """Return the ids of the next batch, first come, first served.

    The batch ends before the first request that exceeds the rest of the budget. No later request
    overtakes it, so small requests never starve a large one. A request that exceeds the whole
    budget forms a batch alone.

    Args:
        waiting: Ids and costs, oldest first.
        budget: The maximum cost of a forward pass.
    """
    batch: list[str] = []
    for request_id, cost in waiting:
        budget -= cost
        if batch and budget < 0:
            break
        batch.append(request_id)
    return batch


def split_steps(steps: int, cost: float, budget: float) -> tuple[range, ...]:
    """Split a request of `steps` equal time steps into the parts of its forward passes.

    A request within `budget` is one part. Otherwise there are as few parts as `budget` allows, of
    nearly equal size. A single step that exceeds `budget` is a part of its own.
    """
    if cost <= budget:
        return (range(steps),)
    max_steps = max(1, int(budget * steps / cost))
    num_parts = -(-steps // max_steps)
    bounds = [steps * part // num_parts for part in range(num_parts + 1)]
    return tuple(range(start, stop) for start, stop in pairwise(bounds))
