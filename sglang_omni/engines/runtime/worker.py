"""The two worker protocols. A worker knows nothing about sockets, queues or clients.

A factory builds the worker inside the engine process. It is named by a dotted path
`"package.module:function"` and called with the engine's settings. It runs on the main thread and
returns a worker that is loaded and warmed up: the engine is ready as soon as the factory returns.
An event loop is set but not running, so a factory may run coroutines to completion or set another
loop. A `StreamWorker` runs on the loop that was current when the factory returned.
"""

from collections.abc import AsyncGenerator, Callable
from dataclasses import dataclass
from typing import Any, Protocol, runtime_checkable

WorkerFactory = Callable[[Any], "StepWorker | StreamWorker"]


class WorkerOutput(Protocol):
    """One output of a request. The output with `last` set ends it. Must pickle without torch.

    An output type may have a method `merge(later)` that combines an output with the following ones
    of the same request. A client that is behind then gets the waiting outputs as one.
    """

    @property
    def last(self) -> bool:
        """Return whether this output ends its request."""


@dataclass(frozen=True)
class StepInput:
    """The input of a step: what changed since the previous one.

    `arrivals` are new requests as pairs (id, request), in order of arrival. `cancellations` are ids
    of requests that the worker holds and must drop before it computes. `stalled` are requests whose
    client is behind: they keep their slot but produce nothing in this step.
    """

    arrivals: tuple[tuple[str, Any], ...] = ()
    cancellations: tuple[str, ...] = ()
    stalled: frozenset[str] = frozenset()


StepResults = list[tuple[str, WorkerOutput | Exception]]


@runtime_checkable
class StepWorker(Protocol):
    """A worker that batches by steps. Every method is called on the main thread."""

    @property
    def info(self) -> Any:
        """Return what the engine reports once it is ready: plain picklable data."""

    @property
    def busy(self) -> bool:
        """Return whether a step would do work although nothing new arrived.

        It is read after a step. If every request in a slot was stalled in that step, a worker whose
        other requests wait for a slot must return False. It is stepped again once a stalled request
        has caught up, ended or been cancelled. Stepping without work would occupy a whole core.
        """

    def step(self, work: StepInput) -> StepResults:
        """Advance every held request that is not stalled, and return the results.

        A request may have several results in one step, in order. A `last` output, or an exception
        returned as a result, ends its request. A raised exception fails every request and ends the
        process. Results are sent while the next step runs, so they and their arrays must not change
        any more. Results that cannot be pickled end the process.
        """

    def counters(self) -> dict[str, float]:
        """Return numbers for health and metrics. Called after every step, so it must be cheap."""

    def close(self) -> None:
        """Release what the worker holds. No method is called afterwards."""


@runtime_checkable
class StreamWorker(Protocol):
    """A worker that does its own batching. It runs on one asyncio loop, on the main thread."""

    @property
    def info(self) -> Any:
        """Return what the engine reports once it is ready: plain picklable data."""

    def run(self, request_id: str, request: Any) -> AsyncGenerator[WorkerOutput, None]:
        """Yield the outputs of one request, with `last` set on the final one.

        Closing or cancelling the generator aborts the work. An exception fails this request only.
        While the client is behind, the next output is not requested.
        """

    async def counters(self) -> dict[str, float]:
        """Return numbers for health and metrics.

        Called four times a second while there are requests and once a second when idle. It is also
        the liveness probe: a call that exceeds the step deadline counts as a hang, and an exception
        counts as a crash.
        """

    async def profile(self, folder: str | None) -> None:
        """Start the profiler; with None, stop it and write the trace to the folder given before."""

    async def close(self) -> None:
        """Release what the worker holds. No method is called afterwards."""
