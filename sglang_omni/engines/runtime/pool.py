"""Several engines of one kind, each a process that lives and dies alone, used as one."""

import asyncio
from collections import Counter
from collections.abc import AsyncGenerator, Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any

from sglang_omni.engines.runtime.process import Engine, EngineProcess, EngineState, ProcessSpec

# Who takes a request when the others cannot; the one that was silent may be heard again.
PREFERENCE: Mapping[EngineState, int] = {"ready": 0, "unresponsive": 1}
DOWN = len(PREFERENCE)


def choose(replicas: Sequence[tuple[EngineState, int]]) -> int:
    """Return the index of the replica that takes the next request, by the state of each and the
    number of requests that it works on: the ready one with the fewest, the first of equals.

    Where none is ready it is one that would have been, so that its error is met.
    """

    def rank(index: int) -> tuple[int, int, int]:
        state, in_flight = replicas[index]
        return PREFERENCE.get(state, DOWN), in_flight, index

    return min(range(len(replicas)), key=rank)


class EnginePool:
    """The replicas of one engine. An `Engine`, which spreads requests over those that are ready."""

    def __init__(self, specs: Sequence[ProcessSpec]) -> None:
        """One replica or more; nothing is started."""
        self.replicas = tuple(EngineProcess(spec) for spec in specs)
        self._held: list[PinnedReplica] = []

    @property
    def processes(self) -> dict[str, EngineProcess]:
        """The replicas by name."""
        return {replica.spec.name: replica for replica in self.replicas}

    @property
    def ready(self) -> bool:
        """Whether any replica can take requests."""
        return any(replica.health.state == "ready" for replica in self.replicas)

    @property
    def info(self) -> Any:
        """What a replica said of itself when it was last ready; None before. They are alike."""
        return next(filter(None, (replica.health.info for replica in self.replicas)), None)

    def submit(self, request: Any) -> AsyncGenerator[Any, None]:
        """As `EngineProcess.submit`, of the replica whose turn it is."""
        return self.next().submit(request)

    @contextmanager
    def held(self) -> Iterator[Engine]:
        """An engine for all that one request asks for in the body, from its beginning on the same
        replica, also when that one dies. The body counts as a request of the replica throughout:
        a long speech is many submissions, with pauses between them."""
        one = PinnedReplica(self)
        self._held.append(one)
        try:
            yield one
        finally:
            self._held.remove(one)

    async def start(self) -> None:
        """Start every replica. Raises `StartupError` of the first that fails; the others are left
        to be stopped."""
        starts = [asyncio.create_task(replica.start()) for replica in self.replicas]
        try:
            await asyncio.gather(*starts)
        finally:
            for start in starts:
                start.cancel()
            await asyncio.gather(*starts, return_exceptions=True)

    async def stop(self, deadline_s: float = 10.0) -> None:
        """Stop every replica; whatever is left of one after `deadline_s` is killed."""
        await asyncio.gather(*(replica.stop(deadline_s) for replica in self.replicas))

    def next(self) -> EngineProcess:
        """The replica whose turn it is."""
        of_requests = Counter(held.replica for held in self._held)
        loads = [
            (replica.health.state, max(replica.in_flight, of_requests[replica]))
            for replica in self.replicas
        ]
        return self.replicas[choose(loads)]


class PinnedReplica:
    """The replica of one request."""

    def __init__(self, pool: EnginePool) -> None:
        self._pool = pool
        self._begun = False
        self.replica = pool.next()

    def submit(self, request: Any) -> AsyncGenerator[Any, None]:
        """As `EngineProcess.submit`. A replica that went down before it was asked for anything is
        left for another."""
        if not self._begun and self.replica.health.state != "ready":
            self.replica = self._pool.next()
        self._begun = True
        return self.replica.submit(request)
