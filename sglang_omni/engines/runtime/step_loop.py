"""The loop of a `StepWorker`: collect messages, step, send the results."""

import threading
import time
from typing import Any

from sglang_omni.engines.runtime.failure import as_omni_error, describe
from sglang_omni.engines.runtime.output_sender import OutputSender
from sglang_omni.engines.runtime.profile import TorchProfiler
from sglang_omni.engines.runtime.transport import (
    Cancel,
    Consumed,
    Failed,
    Outputs,
    Profile,
    Stop,
    Submit,
    ToEngine,
)
from sglang_omni.engines.runtime.worker import StepInput, StepResults, StepWorker
from sglang_omni.protocol.errors import EngineFailed

# Returned in place of a step's input when the profiler must be switched first.
_PROFILE = StepInput(arrivals=(("profile", None),))


class StepInputQueue:
    """Collects what changed since the last step, and how far behind each client is.

    The reader thread fills it and the step loop empties it. A request is live from its arrival
    until its last output or its cancellation, whichever comes first.
    """

    def __init__(self, window: int) -> None:
        self._window = window
        self._changed = threading.Condition()
        self._arrivals: dict[str, Any] = {}
        self._cancellations: set[str] = set()
        self._unconsumed: dict[str, int] = {}
        self._stalled: set[str] = set()
        self._reported_stalled: frozenset[str] = frozenset()
        self._profile_orders: list[str | None] = []
        self._profiler = TorchProfiler()
        self._stopping = False

    def deliver(self, message: ToEngine) -> None:
        """Handle a message from the API process."""
        with self._changed:
            match message:
                case Submit(request_id, request):
                    self._arrivals[request_id] = request
                    self._unconsumed[request_id] = 0
                case Cancel(request_id):
                    self._cancel(request_id)
                case Consumed(request_id, count) if request_id in self._unconsumed:
                    self._count(request_id, -count)
                case Profile(folder):
                    self._profile_orders.append(folder)
                case Stop():
                    self._stopping = True
            self._changed.notify()

    def take(self, busy: bool) -> StepInput | None:
        """Wait until a step is due and return its input, or None to stop.

        The profiler is switched between steps, on the thread that steps.
        """
        while (work := self._take(busy)) is _PROFILE:
            with self._changed:
                orders, self._profile_orders = self._profile_orders, []
            for folder in orders:
                self._profiler.switch(folder)
        return work

    def _take(self, busy: bool) -> StepInput | None:
        with self._changed:
            self._changed.wait_for(
                lambda: self._stopping or self._profile_orders or self._step_due(busy)
            )
            if self._profile_orders and not self._stopping:
                return _PROFILE
            if self._stopping:
                return None
            arrivals, self._arrivals = self._arrivals, {}
            cancellations, self._cancellations = self._cancellations, set()
            self._reported_stalled = frozenset(self._stalled)
            return StepInput(tuple(arrivals.items()), tuple(cancellations), self._reported_stalled)

    def count_output(self, request_id: str, last: bool) -> bool:
        """Count an output of the worker. Return False if its request is no longer live."""
        with self._changed:
            live = request_id in self._unconsumed
            if last:
                self._forget(request_id)
                # The worker has ended the request, so there is nothing left to cancel.
                self._cancellations.discard(request_id)
            elif live:
                self._count(request_id, 1)
            return live

    def live_request_ids(self) -> tuple[str, ...]:
        """Return the ids of the requests in flight."""
        with self._changed:
            return tuple(self._unconsumed)

    def _cancel(self, request_id: str) -> None:
        if not self._forget(request_id):
            return  # It ended before the message arrived.
        if request_id in self._arrivals:
            del self._arrivals[request_id]  # The worker has not received it yet.
        else:
            self._cancellations.add(request_id)

    def _forget(self, request_id: str) -> bool:
        """Drop a request that has ended. Return False if it had ended before."""
        self._stalled.discard(request_id)
        return self._unconsumed.pop(request_id, None) is not None

    def _count(self, request_id: str, delta: int) -> None:
        self._unconsumed[request_id] += delta
        if self._unconsumed[request_id] >= self._window:
            self._stalled.add(request_id)
        else:
            self._stalled.discard(request_id)

    def _step_due(self, busy: bool) -> bool:
        if self._arrivals or self._cancellations:
            return True
        # If every client is behind, stepping would produce nothing and occupy a core.
        all_stalled = bool(self._unconsumed) and len(self._stalled) == len(self._unconsumed)
        # A worker without work in its last step has some again once a client has caught up.
        caught_up = not self._reported_stalled <= self._stalled
        return not all_stalled and (busy or caught_up)


def run_steps(worker: StepWorker, inputs: StepInputQueue, sender: OutputSender) -> None:
    """Step the worker until told to stop, then close it.

    An exception raised by a step fails every request in flight and is raised again, because the
    state of a worker that failed within a step is undefined.
    """
    sender.report(worker.counters())
    seconds = 0.0
    try:
        while (work := inputs.take(worker.busy)) is not None:
            started_at = time.monotonic()
            sender.begin_work()
            results = worker.step(work)
            sender.end_work()
            seconds += time.monotonic() - started_at
            # Report counters first, so that they never lag behind the outputs they count.
            sender.report({**worker.counters(), "step_seconds": seconds})
            _send_results(results, inputs, sender)
    except Exception as error:
        for request_id in inputs.live_request_ids():
            sender.send(Failed(request_id, EngineFailed(f"the step failed: {describe(error)}")))
        raise
    worker.close()


def _send_results(results: StepResults, inputs: StepInputQueue, sender: OutputSender) -> None:
    """Send the results of live requests: all outputs as one message, then the failures."""
    outputs: list[tuple[str, Any]] = []
    failures: list[Failed] = []
    for request_id, result in results:
        if isinstance(result, Exception):
            if inputs.count_output(request_id, last=True):
                failures.append(Failed(request_id, as_omni_error(result)))
        elif inputs.count_output(request_id, result.last):
            outputs.append((request_id, result))
    if outputs:
        sender.send_outputs(Outputs(tuple(outputs)))
    for failure in failures:
        sender.send(failure)
