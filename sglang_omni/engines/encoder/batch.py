"""Which waiting requests share the next forward pass, and what is split. Pure policies."""

from collections.abc import Iterable
from itertools import pairwise


def next_batch(waiting: Iterable[tuple[str, float]], budget: float) -> list[str]:
    """Ids of the next batch, first come first served.

    `waiting` are ids and costs, oldest first. Requests join until one exceeds what is left of
    `budget`: none overtakes it, so a large request is never starved by small ones. A request that
    exceeds the whole budget goes alone.
    """
    batch: list[str] = []
    for request_id, cost in waiting:
        budget -= cost
        if batch and budget < 0:
            break
        batch.append(request_id)
    return batch


def split_steps(steps: int, cost: float, budget: float) -> tuple[range, ...]:
    """Split a request of `steps` equal steps of time into the parts of its forward passes.

    A request within `budget` is one part. Otherwise there are as few parts as `budget` allows, of
    nearly equal size; a single step that exceeds `budget` is a part of its own.
    """
    if cost <= budget:
        return (range(steps),)
    most = max(1, int(budget * steps / cost))
    num_parts = -(-steps // most)
    bounds = [steps * part // num_parts for part in range(num_parts + 1)]
    return tuple(range(first, last) for first, last in pairwise(bounds))
