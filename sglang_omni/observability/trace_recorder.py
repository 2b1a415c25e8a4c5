"""The recorder of traces: metrics, a ring buffer of the latest traces, and exporters."""

import logging
import time
from collections import OrderedDict
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager

from sglang_omni.observability.metrics import RequestMetrics
from sglang_omni.observability.playback_stats import measure_playback
from sglang_omni.observability.refusals import NO_ROUTE, Refusal, RefusalLog
from sglang_omni.observability.trace import Trace, current_trace, use_trace
from sglang_omni.protocol.errors import OmniError

ACCESS_LOG = logging.getLogger("sglang_omni.access")
MAX_TRACES = 2048

Exporter = Callable[[Trace], None]


class TraceRecorder:
    """Owns the traces of requests in progress and of the latest that have ended."""

    def __init__(
        self, sample_rate: Callable[[], int] | None = None, exporters: Sequence[Exporter] = ()
    ) -> None:
        """Create a recorder.

        Args:
            sample_rate: Returns the sample rate of speech in Hz; it may raise `OmniError` until the
                rate is known.
            exporters: Called with every trace that has ended.
        """
        self._sample_rate, self._exporters = sample_rate, tuple(exporters)
        self._traces: OrderedDict[str, Trace] = OrderedDict()
        self.metrics = RequestMetrics()
        self.refusals = RefusalLog(self.metrics.record_refusal)

    def begin(self, request_id: str, given_id: str | None = None) -> Trace:
        """Record the arrival of a request, to which the caller may have given an id."""
        trace = self._traces[request_id] = Trace(request_id, given_id)
        if len(self._traces) > MAX_TRACES:
            self._traces.popitem(last=False)
        self.metrics.in_flight.inc()
        return trace

    def end(self, trace: Trace, route: str, quiet: bool = False) -> None:
        """Record the end of a request. A `quiet` one is counted but not logged."""
        trace.ended_at, trace.route = time.monotonic(), route
        if sample_rate := self._find_sample_rate():
            trace.playback = measure_playback(trace.audio_chunks, trace.started_at, sample_rate)
        trace.audio_chunks = []  # The ring buffer keeps the statistics only.
        if trace.refusal is not None:
            status, reason = trace.refusal
            caller = (trace.shown_id, trace.owner, trace.client)
            self.refusals.add(Refusal(status, reason, route, *caller))
        self.metrics.in_flight.dec()
        self.metrics.record_request(trace)
        seconds = trace.ended_at - trace.started_at
        level = logging.DEBUG if quiet else logging.INFO
        ACCESS_LOG.log(level, "%s %s in %.3f s", route, trace.status or "gone", seconds)
        for export in self._exporters:
            export(trace)

    def record_refusal(self, refusal: Refusal) -> None:
        """Record that the HTTP protocol refused a client, before or during its request."""
        self.refusals.add(refusal)
        if refusal.route == NO_ROUTE:
            self.metrics.record_protocol_refusal(refusal.status)

    @contextmanager
    def nested(self, request_id: str, route: str) -> Iterator[Trace]:
        """Record the body as a request of its own, such as a response in a realtime session.

        Its stages belong to it alone. The caller is the same as of the current request.
        """
        outer = current_trace()
        trace = self.begin(request_id)
        if outer is not None:
            trace.tenant, trace.owner, trace.client = outer.tenant, outer.owner, outer.client
        try:
            with use_trace(trace):
                yield trace
        finally:
            self.end(trace, route)

    def find(self, request_id: str, is_visible: Callable[[Trace], bool]) -> Trace | None:
        """Return the visible trace of a request in progress or among the latest, or None.

        Of requests to which callers gave the same id it is the latest.
        """
        trace = self._traces.get(request_id)
        named = (one for one in reversed(self._traces.values()) if one.given_id == request_id)
        candidates = named if trace is None else (trace,)
        return next(filter(is_visible, candidates), None)

    def find_last(self, is_visible: Callable[[Trace], bool]) -> Trace | None:
        """Return the latest trace of an answer that has ended and is visible, or None."""
        answers = (
            trace
            for trace in reversed(self._traces.values())
            if trace.ended_at is not None and (trace.spans or trace.first_text_at is not None)
        )
        return next(filter(is_visible, answers), None)

    def _find_sample_rate(self) -> int | None:
        try:
            return self._sample_rate() if self._sample_rate else None
        except OmniError:
            return None
