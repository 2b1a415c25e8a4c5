"""Where traces go when their requests end: metrics, a ring of the latest, and exporters."""

import logging
import time
from collections import OrderedDict
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager

from sglang_omni.observability.metrics import RequestMetrics
from sglang_omni.observability.playback_stats import heard
from sglang_omni.observability.refusals import NO_ROUTE, Refusal, RefusalLog
from sglang_omni.observability.trace import Trace, current_trace, tracing
from sglang_omni.protocol.errors import OmniError

ACCESS_LOG = logging.getLogger("sglang_omni.access")
KEPT = 2048

Exporter = Callable[[Trace], None]


class TraceRecorder:
    """Owns the traces of requests under way and of the latest that ended."""

    def __init__(
        self, rate: Callable[[], int] | None = None, exporters: Sequence[Exporter] = ()
    ) -> None:
        """`rate` is that of the speech, in Hz, once it is known."""
        self._rate, self._exporters = rate, tuple(exporters)
        self._traces: OrderedDict[str, Trace] = OrderedDict()
        self.metrics = RequestMetrics()
        self.refusals = RefusalLog(self.metrics.refused)

    def begin(self, request_id: str) -> Trace:
        """A request has arrived."""
        trace = self._traces[request_id] = Trace(request_id)
        if len(self._traces) > KEPT:
            self._traces.popitem(last=False)
        self.metrics.in_flight.inc()
        return trace

    def end(self, trace: Trace, route: str, quiet: bool = False) -> None:
        """A request has ended, however it did. A `quiet` one is counted but leaves no line."""
        trace.ended, trace.route = time.monotonic(), route
        if rate := self._known_rate():
            trace.sound = heard(trace.audio, trace.started_at, rate)
        trace.audio = []  # The ring keeps what came of it.
        if trace.refusal is not None:
            status, reason = trace.refusal
            who = (trace.id, trace.owner, trace.client)
            self.refusals.add(Refusal(status, reason, route, *who))
        self.metrics.in_flight.dec()
        self.metrics.ended(trace)
        seconds = trace.ended - trace.started_at
        level = logging.DEBUG if quiet else logging.INFO
        ACCESS_LOG.log(level, "%s %s in %.3f s", route, trace.status or "gone", seconds)
        for export in self._exporters:
            export(trace)

    def refuse(self, refusal: Refusal) -> None:
        """The protocol has refused what a client sent, before it was a request or while it was."""
        self.refusals.add(refusal)
        if refusal.route == NO_ROUTE:
            self.metrics.refused_by_protocol(refusal.status)

    @contextmanager
    def within(self, request_id: str, route: str) -> Iterator[Trace]:
        """Trace the body as a request of its own within the present one, such as an answer in a
        session: what happens in it is told of it alone. It has the same tenant."""
        around = current_trace()
        trace = self.begin(request_id)
        if around is not None:
            trace.tenant, trace.owner, trace.client = around.tenant, around.owner, around.client
        try:
            with tracing(trace):
                yield trace
        finally:
            self.end(trace, route)

    def find(self, request_id: str) -> Trace | None:
        """The trace of a request that is under way or among the latest."""
        return self._traces.get(request_id)

    def _known_rate(self) -> int | None:
        try:
            return self._rate() if self._rate else None
        except OmniError:
            return None
