"""A pool of engine processes of one kind, used as one engine.

Each replica is a process of its own. The death of one does not affect the others.
"""

import asyncio
from collections import Counter
from collections.abc import AsyncGenerator, Iterator, Mapping, Sequence
from contextlib import aclosing, contextmanager
from typing import Any

from sglang_omni.engines.runtime.process import Engine, EngineProcess, EngineState, ProcessSpec
from sglang_omni.engines.runtime.replica import Replica

# Replicas of a lower rank are preferred. An unresponsive replica may recover, so it comes before
# those that are down. One on standby would only say that it is stopped.
STATE_RANK: Mapping[EngineState, int] = {"ready": 0, "unresponsive": 1, "draining": 2, "standby": 4}
DOWN_RANK = 3


def select_replica(replicas: Sequence[tuple[EngineState, int]]) -> int:
    """Return the index of the replica that takes the next request.

    It is the ready replica with the fewest requests in flight, the first one among equals. If none
    is ready or draining, a replica that is down is returned, so that the caller gets its error.

    Args:
        replicas: The state of each replica and its number of requests in flight.
    """

    def rank(index: int) -> tuple[int, int, int]:
        state, in_flight = replicas[index]
        return STATE_RANK.get(state, DOWN_RANK), in_flight, index

    return min(range(len(replicas)), key=rank)


class EnginePool:
    """The replicas of one engine. An `Engine` that spreads requests over the ready replicas."""

    def __init__(self, specs: Sequence[ProcessSpec], min_replicas: int | None = None) -> None:
        """Create one replica for each spec, without starting it.

        The first `min_replicas` always run, by default all. An `Autoscaler` starts and stops the
        others, which are on standby until then.
        """
        self.min_replicas = len(specs) if min_replicas is None else min_replicas
        self.replicas = tuple(
            Replica(spec, index >= self.min_replicas) for index, spec in enumerate(specs)
        )
        self._pinned: list[PinnedReplica] = []

    @property
    def processes(self) -> dict[str, EngineProcess]:
        """Return the replicas by name."""
        return {replica.spec.name: replica for replica in self.replicas}

    @property
    def is_ready(self) -> bool:
        """Return whether any replica can take requests."""
        return any(replica.health.state == "ready" for replica in self.replicas)

    @property
    def info(self) -> Any:
        """Return what a replica reported when it was last ready, None before. All report alike."""
        return next(filter(None, (replica.health.info for replica in self.replicas)), None)

    async def submit(self, request: Any) -> AsyncGenerator[Any, None]:
        """Submit a request to the next replica on the first iteration; see `EngineProcess.submit`.

        A replica that is selected earlier could be stopped before the request counts.
        """
        async with aclosing(self.select_next().submit(request)) as outputs:
            async for output in outputs:
                yield output

    @contextmanager
    def pin_replica(self) -> Iterator[Engine]:
        """Provide an engine that serves everything in the body on the same replica.

        The replica stays the same even when it dies after the first submission. The body counts as
        one request in flight throughout, because a long speech consists of many submissions with
        pauses between them.
        """
        replica = PinnedReplica(self)
        self._pinned.append(replica)
        try:
            yield replica
        finally:
            self._pinned.remove(replica)

    async def start(self) -> None:
        """Start every replica that is not on standby.

        Raises:
            StartupError: The first replica that failed to start. The caller must still `stop` the
                pool.
        """
        starts = [
            asyncio.create_task(replica.start())
            for replica in self.replicas
            if replica.phase == "active"
        ]
        try:
            await asyncio.gather(*starts)
        finally:
            for start in starts:
                start.cancel()
            await asyncio.gather(*starts, return_exceptions=True)

    async def stop(self, deadline_s: float = 10.0) -> None:
        """Stop every replica; kill what is left of one after `deadline_s` seconds."""
        await asyncio.gather(*(replica.stop(deadline_s) for replica in self.replicas))

    def select_next(self) -> Replica:
        """Return the replica that takes the next request."""
        counts = self.count_requests()
        loads = [(replica.health.state, counts[replica]) for replica in self.replicas]
        return self.replicas[select_replica(loads)]

    def count_requests(self) -> dict[Replica, int]:
        """Return the number of requests of each replica: those in flight, or pinned to it."""
        pinned_counts = Counter(pinned.replica for pinned in self._pinned)
        return {
            replica: max(replica.in_flight, pinned_counts[replica]) for replica in self.replicas
        }


class PinnedReplica:
    """An `Engine` that submits everything to one replica."""

    def __init__(self, pool: EnginePool) -> None:
        self._pool = pool
        self._has_submitted = False
        self.replica = pool.select_next()

    def submit(self, request: Any) -> AsyncGenerator[Any, None]:
        """Submit a request to the replica; see `EngineProcess.submit`.

        If the replica went down before the first submission, another one is selected.
        """
        if not self._has_submitted and self.replica.health.state != "ready":
            self.replica = self._pool.select_next()
        self._has_submitted = True
        return self.replica.submit(request)
