"""The loop of a `StreamWorker`: one task per request, on the worker's asyncio loop."""

import asyncio
import logging
from collections.abc import Mapping
from contextlib import aclosing, suppress
from typing import Any

from sglang_omni.engines.runtime.failure import as_omni_error, describe
from sglang_omni.engines.runtime.output_sender import OutputSender
from sglang_omni.engines.runtime.transport import (
    HEARTBEAT_INTERVAL_S,
    Cancel,
    Consumed,
    Failed,
    Outputs,
    Profile,
    Stop,
    Submit,
    ToEngine,
)
from sglang_omni.engines.runtime.worker import StreamWorker
from sglang_omni.protocol.errors import EngineFailed

LOGGER = logging.getLogger(__name__)

# An idle worker's counters are read in every fourth iteration of the loop.
IDLE_PROBE_INTERVAL = 4


class _Window:
    """Flow control of one request: how many outputs may be sent before the client consumes some."""

    def __init__(self, size: int) -> None:
        self._credits = size
        self._is_open = asyncio.Event()

    async def acquire(self) -> None:
        """Use one credit, and wait until there is another."""
        self._credits -= 1
        if self._credits <= 0:
            self._is_open.clear()
            await self._is_open.wait()

    def release(self, count: int) -> None:
        """Return credits."""
        self._credits += count
        if self._credits > 0:
            self._is_open.set()


class _ProbeSchedule:
    """Decides when to read a worker's counters. SGLang's need a round trip to every rank.

    They are read in every iteration of the loop while there are requests and until the counters
    have settled afterwards, and in every fourth iteration when idle.
    """

    def __init__(self) -> None:
        self._idle_counters: Mapping[str, float] | None = None
        self._working = self._settled = False
        self._skipped = 0

    def is_due(self, working: bool) -> bool:
        """Return whether to read the counters in this iteration."""
        self._working = working
        if self._settled and not working and self._skipped < IDLE_PROBE_INTERVAL - 1:
            self._skipped += 1
            return False
        return True

    def record(self, counters: Mapping[str, float]) -> None:
        """Record the counters that were read. Two equal readings without requests mean idle."""
        self._settled = not self._working and counters == self._idle_counters
        self._idle_counters = None if self._working else counters
        self._skipped = 0


class StreamLoop:
    """Owns the requests of a `StreamWorker`; every method runs on its loop."""

    def __init__(self, worker: StreamWorker, sender: OutputSender, window: int) -> None:
        self._worker = worker
        self._sender = sender
        self._window = window
        self._requests: dict[str, tuple[asyncio.Task[None], _Window]] = {}
        self._profile_tasks: set[asyncio.Task[None]] = set()
        self._outputs: list[tuple[str, Any]] = []
        self._stopping = asyncio.Event()

    def deliver(self, message: ToEngine) -> None:
        """Handle a message from the API process."""
        match message:
            case Submit(request_id, request):
                self._open(request_id, request)
            case Cancel(request_id) if request_id in self._requests:
                self._requests[request_id][0].cancel()
            case Consumed(request_id, count) if request_id in self._requests:
                self._requests[request_id][1].release(count)
            case Profile(folder):
                task = asyncio.create_task(self._profile(folder))
                self._profile_tasks.add(task)
                task.add_done_callback(self._profile_tasks.discard)
            case Stop():
                self._stopping.set()

    async def run(self) -> None:
        """Serve until told to stop, then abort the remaining requests and close the worker."""
        schedule = _ProbeSchedule()
        while not self._stopping.is_set():
            # The clock restarts with every iteration: heartbeats show a blocked loop as a long one.
            self._sender.begin_work()
            if schedule.is_due(bool(self._requests)):
                counters = await self._worker.counters()
                schedule.record(counters)
                self._sender.report(counters)
            with suppress(TimeoutError):
                async with asyncio.timeout(HEARTBEAT_INTERVAL_S):
                    await self._stopping.wait()
        tasks = [task for task, _ in self._requests.values()]
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
        await self._worker.close()

    def _open(self, request_id: str, request: Any) -> None:
        window = _Window(self._window)
        task = asyncio.create_task(self._serve(request_id, request, window))
        self._requests[request_id] = (task, window)
        # Not in a `finally` of the task, which does not run if it is cancelled before it starts.
        task.add_done_callback(lambda _: self._requests.pop(request_id))

    async def _profile(self, folder: str | None) -> None:
        """Forward the order to the worker. A profiler that fails must not fail a request."""
        try:
            await self._worker.profile(folder)
        except Exception as error:
            LOGGER.error("cannot profile: %s", describe(error))

    async def _serve(self, request_id: str, request: Any, window: _Window) -> None:
        task = asyncio.current_task()
        try:
            async with aclosing(self._worker.run(request_id, request)) as outputs:
                async for output in outputs:
                    # Until Python 3.12 `asyncio.wait_for`, in which SGLang waits for tokens, loses
                    # a cancellation that comes with a token.
                    if task is not None and task.cancelling():
                        raise asyncio.CancelledError
                    self._send(request_id, output)
                    if output.last:
                        return
                    await window.acquire()
            raise EngineFailed("the worker ended the request without a last output")
        except Exception as error:
            self._flush()  # Earlier outputs of the request go first.
            self._sender.send(Failed(request_id, as_omni_error(error)))

    def _send(self, request_id: str, output: Any) -> None:
        """Send an output together with the others of this iteration of the loop.

        A step has one output for every request, and receiving a message costs the API process as
        much as several outputs in it.
        """
        if not self._outputs:
            asyncio.get_running_loop().call_soon(self._flush)
        self._outputs.append((request_id, output))

    def _flush(self) -> None:
        outputs, self._outputs = self._outputs, []
        try:
            if outputs:
                self._sender.send(Outputs(tuple(outputs)))
        except Exception:
            for request_id, output in outputs:
                self._send_alone(request_id, output)

    def _send_alone(self, request_id: str, output: Any) -> None:
        """Send one output. If it cannot be encoded, only its request fails."""
        try:
            self._sender.send(Outputs(((request_id, output),)))
        except Exception as error:
            self._sender.send(Failed(request_id, as_omni_error(error)))
            if request_id in self._requests:
                self._requests[request_id][0].cancel()
