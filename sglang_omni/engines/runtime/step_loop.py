"""Runs a `StepWorker`: collects what arrived between steps, steps, hands out what came of it."""

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

# Stands for "no step now, the profiler first".
_PROFILE = StepInput(arrivals=(("profile", None),))


class Inbox:
    """What changed since the last step, and how far behind each client is.

    The reader thread fills it, the step loop empties it. A request is live from its arrival until
    its last output or its cancellation, whichever comes first.
    """

    def __init__(self, window: int) -> None:
        self._window = window
        self._changed = threading.Condition()
        self._arrivals: dict[str, Any] = {}
        self._cancellations: set[str] = set()
        self._unconsumed: dict[str, int] = {}
        self._stalled: set[str] = set()
        self._told_stalled: frozenset[str] = frozenset()
        self._profiling: list[str | None] = []
        self._profiler = TorchProfiler()
        self._stopping = False

    def deliver(self, message: ToEngine) -> None:
        """Take a message of the API process."""
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
                    self._profiling.append(folder)
                case Stop():
                    self._stopping = True
            self._changed.notify()

    def take(self, busy: bool) -> StepInput | None:
        """Wait until a step is worth taking and return its input, or None to stop.

        Between steps, and on the thread that takes them, the profiler begins and ends.
        """
        while (work := self._take(busy)) is _PROFILE:
            with self._changed:
                orders, self._profiling = self._profiling, []
            for folder in orders:
                self._profiler.switch(folder)
        return work

    def _take(self, busy: bool) -> StepInput | None:
        with self._changed:
            self._changed.wait_for(
                lambda: self._stopping or self._profiling or self._step_due(busy)
            )
            if self._profiling and not self._stopping:
                return _PROFILE
            if self._stopping:
                return None
            arrivals, self._arrivals = self._arrivals, {}
            cancellations, self._cancellations = self._cancellations, set()
            self._told_stalled = frozenset(self._stalled)
            return StepInput(tuple(arrivals.items()), tuple(cancellations), self._told_stalled)

    def count_output(self, request_id: str, last: bool) -> bool:
        """Count an output of the worker; False if nobody waits for it any more."""
        with self._changed:
            live = request_id in self._unconsumed
            if last:
                self._forget(request_id)
                # The worker has ended it already, so there is nothing left to cancel.
                self._cancellations.discard(request_id)
            elif live:
                self._count(request_id, 1)
            return live

    def live(self) -> tuple[str, ...]:
        """Return the ids of the requests in flight."""
        with self._changed:
            return tuple(self._unconsumed)

    def _cancel(self, request_id: str) -> None:
        if not self._forget(request_id):
            return  # It ended while the message was under way.
        if request_id in self._arrivals:
            del self._arrivals[request_id]  # The worker never heard of it.
        else:
            self._cancellations.add(request_id)

    def _forget(self, request_id: str) -> bool:
        """A request has ended; False if it had already."""
        self._stalled.discard(request_id)
        return self._unconsumed.pop(request_id, None) is not None

    def _count(self, request_id: str, more: int) -> None:
        self._unconsumed[request_id] += more
        if self._unconsumed[request_id] >= self._window:
            self._stalled.add(request_id)
        else:
            self._stalled.discard(request_id)

    def _step_due(self, busy: bool) -> bool:
        if self._arrivals or self._cancellations:
            return True
        # A worker whose every client is behind would spin without producing anything.
        all_stalled = bool(self._unconsumed) and len(self._stalled) == len(self._unconsumed)
        # One that could do nothing in its last step can, once a client has caught up.
        caught_up = not self._told_stalled <= self._stalled
        return not all_stalled and (busy or caught_up)


def run_steps(worker: StepWorker, inbox: Inbox, uplink: OutputSender) -> None:
    """Step the worker until told to stop, then close it.

    An exception out of a step fails every request in flight and is raised: a worker that broke
    half-way through a step has no state to go on from.
    """
    uplink.report(worker.counters())
    seconds = 0.0
    try:
        while (work := inbox.take(worker.busy)) is not None:
            began = time.monotonic()
            uplink.begin_work()
            results = worker.step(work)
            uplink.end_work()
            seconds += time.monotonic() - began
            # Counters go first, so that they never lag behind the outputs they count.
            uplink.report({**worker.counters(), "step_seconds": seconds})
            _hand_out(results, inbox, uplink)
    except Exception as error:
        for request_id in inbox.live():
            uplink.send(Failed(request_id, EngineFailed(f"the step failed: {describe(error)}")))
        raise
    worker.close()


def _hand_out(results: StepResults, inbox: Inbox, uplink: OutputSender) -> None:
    """Send what somebody waits for: all outputs of the step as one message, then its failures."""
    outputs: list[tuple[str, Any]] = []
    failures: list[Failed] = []
    for request_id, result in results:
        if isinstance(result, Exception):
            if inbox.count_output(request_id, last=True):
                failures.append(Failed(request_id, as_omni_error(result)))
        elif inbox.count_output(request_id, result.last):
            outputs.append((request_id, result))
    if outputs:
        uplink.send_outputs(Outputs(tuple(outputs)))
    for failure in failures:
        uplink.send(failure)
