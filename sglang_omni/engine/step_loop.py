"""Runs a `StepWorker`: collects what arrived between steps, steps, hands out what came of it."""

import threading
from typing import Any

from sglang_omni.engine.failure import as_omni_error, describe
from sglang_omni.engine.transport import (
    Cancel,
    Consumed,
    Failed,
    Output,
    Stop,
    Submit,
    ToEngine,
)
from sglang_omni.engine.uplink import Uplink
from sglang_omni.engine.worker import StepInput, StepResults, StepWorker
from sglang_omni.errors import EngineFailed


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
                    self._unconsumed[request_id] -= count
                case Stop():
                    self._stopping = True
            self._changed.notify()

    def take(self, busy: bool) -> StepInput | None:
        """Wait until a step is worth taking and return its input, or None to stop."""
        with self._changed:
            self._changed.wait_for(lambda: self._stopping or self._step_due(busy))
            if self._stopping:
                return None
            arrivals, self._arrivals = self._arrivals, {}
            cancellations, self._cancellations = self._cancellations, set()
            return StepInput(tuple(arrivals.items()), tuple(cancellations), self._stalled())

    def count_output(self, request_id: str, last: bool) -> bool:
        """Count an output of the worker; False if nobody waits for it any more."""
        with self._changed:
            live = request_id in self._unconsumed
            if last:
                self._unconsumed.pop(request_id, None)
                # The worker has ended it already, so there is nothing left to cancel.
                self._cancellations.discard(request_id)
            elif live:
                self._unconsumed[request_id] += 1
            return live

    def live(self) -> tuple[str, ...]:
        """Return the ids of the requests in flight."""
        with self._changed:
            return tuple(self._unconsumed)

    def _cancel(self, request_id: str) -> None:
        if self._unconsumed.pop(request_id, None) is None:
            return  # It ended while the message was under way.
        if request_id in self._arrivals:
            del self._arrivals[request_id]  # The worker never heard of it.
        else:
            self._cancellations.add(request_id)

    def _step_due(self, busy: bool) -> bool:
        if self._arrivals or self._cancellations:
            return True
        # A busy worker whose every client is behind would spin without producing anything.
        all_stalled = bool(self._unconsumed) and len(self._stalled()) == len(self._unconsumed)
        return busy and not all_stalled

    def _stalled(self) -> frozenset[str]:
        behind = (key for key, count in self._unconsumed.items() if count >= self._window)
        return frozenset(behind)


def run_steps(worker: StepWorker, inbox: Inbox, uplink: Uplink) -> None:
    """Step the worker until told to stop, then close it.

    An exception out of a step fails every request in flight and is raised: a worker that broke
    half-way through a step has no state to go on from.
    """
    uplink.report(worker.counters())
    try:
        while (work := inbox.take(worker.busy)) is not None:
            uplink.begin_work()
            results = worker.step(work)
            uplink.end_work()
            # Counters go first, so that they never lag behind the outputs they count.
            uplink.report(worker.counters())
            _hand_out(results, inbox, uplink)
    except Exception as error:
        for request_id in inbox.live():
            uplink.send(Failed(request_id, EngineFailed(f"the step failed: {describe(error)}")))
        raise
    worker.close()


def _hand_out(results: StepResults, inbox: Inbox, uplink: Uplink) -> None:
    for request_id, result in results:
        if isinstance(result, Exception):
            if inbox.count_output(request_id, last=True):
                uplink.send(Failed(request_id, as_omni_error(result)))
        elif inbox.count_output(request_id, result.last):
            uplink.send(Output(request_id, result))
