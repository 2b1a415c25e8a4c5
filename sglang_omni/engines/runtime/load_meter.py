"""Measures the load of a pool for its autoscaling."""

from collections.abc import Callable, Mapping

from sglang_omni.engines.runtime.pool import EnginePool
from sglang_omni.engines.runtime.replica import UP_STATES
from sglang_omni.engines.runtime.scaling_policy import PoolLoad

GetQueueCounters = Callable[[], Mapping[str, float]]
"""Returns the counters `queued` and `rejected` of the queue in front of a pool."""


class LoadMeter:
    """Measures the load of a pool. It remembers counters, to see what was added to them."""

    def __init__(
        self, pool: EnginePool, get_queue_counters: GetQueueCounters | None = None
    ) -> None:
        """Take the pool, and the counters of the queue in front of it, if it has one."""
        self._pool, self._get_queue_counters = pool, get_queue_counters
        self._num_rejected = self._queue_counters().get("rejected", 0)
        self._num_overloaded = dict.fromkeys(pool.replicas, 0.0)

    def measure(self) -> PoolLoad:
        """Return the load now."""
        active = [replica for replica in self._pool.replicas if replica.phase == "active"]
        states = {replica: replica.health.state for replica in active}
        counts = self._pool.count_requests()
        counts_up = [counts[replica] for replica in active if states[replica] in UP_STATES]
        slots: int | None = getattr(self._pool.info, "slots", None)
        num_waiting = self._count_waiting()
        num_overloaded = self._count_overloaded()
        return PoolLoad(
            num_up=len(counts_up),
            num_starting=sum(state == "starting" for state in states.values()),
            num_down=sum(
                replica.is_autoscaled and state not in (*UP_STATES, "starting")
                for replica, state in states.items()
            ),
            in_flight=sum(counts.values()),
            backlog=num_overloaded + (num_waiting if is_full(counts_up, slots) else 0),
            slots=slots,
        )

    def _count_waiting(self) -> int:
        """Return how many requests wait for the pool or in it, or were rejected by its queue."""
        counters = self._queue_counters()
        num_rejected = counters.get("rejected", 0)
        num_new, self._num_rejected = num_rejected - self._num_rejected, num_rejected
        num_inside = sum(
            replica.health.counters.get("waiting", 0) for replica in self._pool.replicas
        )
        return int(counters.get("queued", 0) + num_new + num_inside)

    def _count_overloaded(self) -> int:
        """Return how many requests the replicas rejected, because others would stall."""
        count = 0.0
        for replica in self._pool.replicas:
            total = replica.health.counters.get("overloaded", 0)
            # The count of a new process begins at 0.
            count += max(0.0, total - self._num_overloaded[replica])
            self._num_overloaded[replica] = total
        return int(count)

    def _queue_counters(self) -> Mapping[str, float]:
        return self._get_queue_counters() if self._get_queue_counters else {}


def is_full(counts: list[int], slots: int | None) -> bool:
    """Return whether more replicas would help requests that wait.

    They would not while there is room. A request that waits in a replica stays there, and one that
    needs speech may hold a place while it waits for another engine.

    Args:
        counts: The requests of each replica that is up.
        slots: The requests that a replica serves at once. If that is not known, a replica with a
            request has no room.
    """
    if slots is None:
        return all(counts)
    return sum(counts) >= len(counts) * slots
