"""The two contracts a worker can meet. A worker knows nothing of sockets, queues or clients.

A worker is built inside the engine's own process by a factory, named by a dotted path
`"package.module:function"` and called with the engine's settings. The factory runs on the main
thread and returns a worker that is loaded and warm: the engine is ready as soon as it returns.
An event loop is set there but not running, so a factory may run coroutines to completion, or set
another loop; a `StreamWorker` then lives on the loop that was current when the factory returned.
"""

from collections.abc import AsyncGenerator, Callable
from dataclasses import dataclass
from typing import Any, Protocol, runtime_checkable

WorkerFactory = Callable[[Any], "StepWorker | StreamWorker"]


class WorkerOutput(Protocol):
    """One output of a request. The output with `last` set ends it. Must pickle without torch.

    Where it has a method `joined(later)`, which makes one output of it and the next ones of the
    request, a client for whom several wait gets them as one.
    """

    @property
    def last(self) -> bool: ...


@dataclass(frozen=True)
class StepInput:
    """What changed since the step before.

    `arrivals` are new requests, id first, in the order they came. `cancellations` are requests
    the worker holds and must forget before it computes. `stalled` are requests whose client is
    behind: they keep their slot but produce nothing in this step.
    """

    arrivals: tuple[tuple[str, Any], ...] = ()
    cancellations: tuple[str, ...] = ()
    stalled: frozenset[str] = frozenset()


StepResults = list[tuple[str, WorkerOutput | Exception]]


@runtime_checkable
class StepWorker(Protocol):
    """A worker that batches by steps. Every method is called on the process's main thread."""

    @property
    def info(self) -> Any:
        """What the engine reports about itself once ready; plain picklable data."""

    @property
    def busy(self) -> bool:
        """Whether a step would do work although nothing new arrived.

        Asked after a step: a worker that holds requests for which it has no room says no when
        every other one it holds was stalled in that step. It is stepped again once one of them
        has caught up, ended or been cancelled. A step that does nothing costs a whole core.
        """

    def step(self, work: StepInput) -> StepResults:
        """Advance every held request that is not stalled, and return what came out.

        A request may have several results in one step, in order. A `last` output or an exception
        as result ends its request. An exception raised fails every request and ends the process.
        Results are sent while the next step runs: what they hold must not change any more, arrays
        included. Results that cannot be pickled end the process.
        """

    def counters(self) -> dict[str, float]:
        """Numbers for health and metrics. Called after every step, so it must be cheap."""

    def close(self) -> None:
        """Give up what the worker holds. Nothing is called after it."""


@runtime_checkable
class StreamWorker(Protocol):
    """A worker that batches by itself. Everything runs on one asyncio loop, on the main thread."""

    @property
    def info(self) -> Any:
        """What the engine reports about itself once ready; plain picklable data."""

    def run(self, request_id: str, request: Any) -> AsyncGenerator[WorkerOutput, None]:
        """Yield the outputs of one request, `last` set on the final one.

        Closing or cancelling the generator aborts the work. An exception fails this request only.
        A client that is behind is shown by not asking for the next output.
        """

    async def counters(self) -> dict[str, float]:
        """Numbers for health and metrics, asked for four times a second while there are requests
        and once a second at rest.

        It is also the liveness probe: not answering within the engine's step deadline counts as
        hung, raising counts as a crash.
        """

    async def profile(self, folder: str | None) -> None:
        """Begin to profile; or with None, end it and write what was seen to the folder."""

    async def close(self) -> None:
        """Give up what the worker holds. Nothing is called after it."""
