"""Runs a `StreamWorker`: one task per request, on the loop the worker lives on."""

import asyncio
import logging
from collections.abc import Mapping
from contextlib import aclosing, suppress
from typing import Any

from sglang_omni.engines.runtime.failure import as_omni_error, describe
from sglang_omni.engines.runtime.output_sender import OutputSender
from sglang_omni.engines.runtime.transport import (
    BEAT_INTERVAL_S,
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

# At rest, a worker is asked for its counters in one of so many turns of the loop.
REST_TURNS = 4


class _Window:
    """How many more outputs a client may be sent before it has consumed some."""

    def __init__(self, size: int) -> None:
        self._room = size
        self._open = asyncio.Event()

    async def spend(self) -> None:
        """Use one place, and return when there is another."""
        self._room -= 1
        if self._room <= 0:
            self._open.clear()
            await self._open.wait()

    def refill(self, count: int) -> None:
        """Give places back."""
        self._room += count
        if self._room > 0:
            self._open.set()


class _ProbePace:
    """When to ask a worker for its counters, which SGLang's take a round trip to every rank for.

    In every turn of the loop while there are requests and until the counters have settled after
    them, and in every fourth at rest.
    """

    def __init__(self) -> None:
        self._at_rest: Mapping[str, float] | None = None
        self._working = self._settled = False
        self._skipped = 0

    def is_due(self, working: bool) -> bool:
        """Return whether this turn is one to ask in."""
        self._working = working
        if self._settled and not working and self._skipped < REST_TURNS - 1:
            self._skipped += 1
            return False
        return True

    def probed(self, counters: Mapping[str, float]) -> None:
        """Take what was answered: two equal answers without requests are those of a rest."""
        self._settled = not self._working and counters == self._at_rest
        self._at_rest = None if self._working else counters
        self._skipped = 0


class StreamLoop:
    """Owns the requests of a `StreamWorker`; every method runs on its loop."""

    def __init__(self, worker: StreamWorker, uplink: OutputSender, window: int) -> None:
        self._worker = worker
        self._uplink = uplink
        self._window = window
        self._requests: dict[str, tuple[asyncio.Task[None], _Window]] = {}
        self._profiling: set[asyncio.Task[None]] = set()
        self._outputs: list[tuple[str, Any]] = []
        self._stopping = asyncio.Event()

    def deliver(self, message: ToEngine) -> None:
        """Take a message of the API process."""
        match message:
            case Submit(request_id, request):
                self._open(request_id, request)
            case Cancel(request_id) if request_id in self._requests:
                self._requests[request_id][0].cancel()
            case Consumed(request_id, count) if request_id in self._requests:
                self._requests[request_id][1].refill(count)
            case Profile(folder):
                task = asyncio.create_task(self._profile(folder))
                self._profiling.add(task)
                task.add_done_callback(self._profiling.discard)
            case Stop():
                self._stopping.set()

    async def run(self) -> None:
        """Serve until told to stop, then abort what is left and close the worker."""
        pace = _ProbePace()
        while not self._stopping.is_set():
            # The clock restarts with every turn: a blocked loop shows in the beats as a long one.
            self._uplink.begin_work()
            if pace.is_due(bool(self._requests)):
                counters = await self._worker.counters()
                pace.probed(counters)
                self._uplink.report(counters)
            with suppress(TimeoutError):
                await asyncio.wait_for(self._stopping.wait(), BEAT_INTERVAL_S)
        tasks = [task for task, _ in self._requests.values()]
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
        await self._worker.close()

    def _open(self, request_id: str, request: Any) -> None:
        window = _Window(self._window)
        task = asyncio.create_task(self._serve(request_id, request, window))
        self._requests[request_id] = (task, window)
        # Not in a `finally` of the task: one cancelled before its first turn runs none.
        task.add_done_callback(lambda _: self._requests.pop(request_id))

    async def _profile(self, folder: str | None) -> None:
        """Pass the order on; a profile that fails costs no request."""
        try:
            await self._worker.profile(folder)
        except Exception as error:
            LOGGER.error("cannot profile: %s", describe(error))

    async def _serve(self, request_id: str, request: Any, window: _Window) -> None:
        try:
            async with aclosing(self._worker.run(request_id, request)) as outputs:
                async for output in outputs:
                    self._send(request_id, output)
                    if output.last:
                        return
                    await window.spend()
            raise EngineFailed("the worker ended the request without a last output")
        except Exception as error:
            self._flush()  # What it gave before goes first.
            self._uplink.send(Failed(request_id, as_omni_error(error)))

    def _send(self, request_id: str, output: Any) -> None:
        """Send an output with the others of this turn of the loop: a step has one for every
        request, and a message costs the API process as much as several outputs in it."""
        if not self._outputs:
            asyncio.get_running_loop().call_soon(self._flush)
        self._outputs.append((request_id, output))

    def _flush(self) -> None:
        outputs, self._outputs = self._outputs, []
        try:
            if outputs:
                self._uplink.send(Outputs(tuple(outputs)))
        except Exception:
            for request_id, output in outputs:
                self._send_alone(request_id, output)

    def _send_alone(self, request_id: str, output: Any) -> None:
        """An output that cannot be encoded fails its own request."""
        try:
            self._uplink.send(Outputs(((request_id, output),)))
        except Exception as error:
            self._uplink.send(Failed(request_id, as_omni_error(error)))
            if request_id in self._requests:
                self._requests[request_id][0].cancel()
