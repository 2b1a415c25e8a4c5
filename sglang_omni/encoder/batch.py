"""Which waiting requests share the next forward pass. A pure policy."""

from collections.abc import Iterable


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
