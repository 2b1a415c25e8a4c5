"""Prometheus metrics: of requests as they end, and of engines whenever somebody looks."""

from collections.abc import Callable, Iterator, Mapping
from typing import Any

from prometheus_client import CollectorRegistry, Counter, Gauge, Histogram, generate_latest
from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily, Metric
from prometheus_client.registry import Collector

from sglang_omni.observability.trace import Trace

PREFIX = "sgl_omni"
# The route of requests that were refused by the protocol.
PROTOCOL = "protocol"
SECONDS = (0.005, 0.01, 0.025, 0.05, 0.1, 0.2, 0.3, 0.5, 0.75, 1, 1.5, 2.5, 5, 10, 30, 60, 120)
FACTORS = (0.01, 0.02, 0.05, 0.1, 0.2, 0.3, 0.5, 0.75, 1, 1.5, 2, 5)
STALLS = (0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10)
# Counters of engines that go up and down; all others only go up until the engine restarts.
LEVELS = frozenset(
    (
        "active_slots",
        "waiting",
        "running",
        "kv_tokens_used",
        "kv_tokens_capacity",
        "admitted",
        "queued",
        "image_cache_entries",
        "image_cache_bytes",
        "audio_cache_entries",
        "audio_cache_bytes",
    )
)

LABELS = ("engine", "replica")

Engines = Callable[[], Mapping[str, Mapping[str, Any]]]


class RequestMetrics:
    """What is counted of requests. Owns a registry, so that two servers share no numbers."""

    def __init__(self) -> None:
        self.registry = CollectorRegistry()
        self._requests = self._make(Counter, "requests", "Requests ended", ["route", "status"])
        self._refusals = self._make(Counter, "refusals", "Refusals by their reason", ["reason"])
        self.in_flight = self._make(Gauge, "requests_in_flight", "Requests being served", [])
        self.tasks = self._make(Gauge, "tasks", "Tasks of the event loop", [])
        self.stalls = self._make(
            Histogram,
            "event_loop_stall_seconds",
            "By how much the event loop woke too late, twenty times a second",
            [],
            buckets=STALLS,
        )
        self._seconds = self._times("request_seconds", "Arrival to last byte", ["route"])
        self._stages = self._times("stage_seconds", "Begin to end of a stage", ["stage"])
        self._firsts = self._times(
            "stage_first_output_seconds", "Begin to first output of a stage", ["stage"]
        )
        self._failures = self._make(
            Counter, "stage_failures", "Stages that did not end well", ["stage", "error"]
        )
        self._ttft = self._times("ttft_seconds", "Arrival to first text", ["route"])
        self._ttfa = self._times("ttfa_seconds", "Arrival to first audio", ["route"])
        self._rtf = self._make(
            Histogram, "rtf", "Seconds per second of audio", ["route"], buckets=FACTORS
        )
        self._audio = self._make(Counter, "audio_seconds", "Speech made", ["route"])
        self._underruns = self._make(
            Counter, "underrun_seconds", "Silence where speech was due", ["route"]
        )

    def ended(self, trace: Trace) -> None:
        """Count a request that has ended."""
        assert trace.ended is not None
        route = trace.route
        self._requests.labels(route, str(trace.status or "gone")).inc()
        self._seconds.labels(route).observe(trace.ended - trace.started_at)
        for span in trace.spans:
            if span.ended is not None:
                self._stages.labels(span.name).observe(span.ended - span.started_at)
            if span.first is not None:
                self._firsts.labels(span.name).observe(span.first - span.started_at)
            if span.error is not None:
                self._failures.labels(span.name, span.error).inc()
        if trace.first_text is not None:
            self._ttft.labels(route).observe(trace.first_text - trace.started_at)
        if trace.sound is not None:
            self._ttfa.labels(route).observe(trace.sound.first_s)
            self._rtf.labels(route).observe(trace.sound.rtf)
            self._audio.labels(route).inc(trace.sound.audio_s)
            self._underruns.labels(route).inc(trace.sound.underrun_s)

    def refused_by_protocol(self, status: int) -> None:
        """Count a request that was refused before it had a route, for how it was sent."""
        self._requests.labels(PROTOCOL, str(status)).inc()

    def refused(self, reason: str) -> None:
        """Count a refusal; `reason` is one of the few that the code names."""
        self._refusals.labels(reason).inc()

    def _make(self, kind: Any, name: str, about: str, labels: list[str], **options: Any) -> Any:
        return kind(f"{PREFIX}_{name}", about, labels, registry=self.registry, **options)

    def _times(self, name: str, about: str, labels: list[str]) -> Any:
        return self._make(Histogram, name, about, labels, buckets=SECONDS)


class EngineCollector(Collector):
    """Engines as they are when somebody looks: nothing is kept here."""

    def __init__(self, engines: Engines) -> None:
        self._engines = engines

    def collect(self) -> Iterator[Metric]:
        """State, restarts and every counter of every engine."""
        up = GaugeMetricFamily(f"{PREFIX}_engine_up", "1 while ready", labels=LABELS)
        restarts = CounterMetricFamily(
            f"{PREFIX}_engine_restarts", "Restarts after a death or a hang", labels=LABELS
        )
        numbers: dict[str, Metric] = {}
        for name, engine in self._engines().items():
            labels = [engine.get("kind", name), str(engine.get("replica", 0))]
            up.add_metric(labels, engine.get("state") == "ready")
            restarts.add_metric(labels, engine.get("restarts", 0))
            for counter, value in engine.get("counters", {}).items():
                family = numbers.setdefault(counter, _family(counter))
                family.add_metric(labels, value)  # type: ignore[attr-defined]
        yield from (up, restarts, *numbers.values())


def _family(counter: str) -> Metric:
    kind = GaugeMetricFamily if counter in LEVELS else CounterMetricFamily
    name = f"{PREFIX}_engine_{counter}"
    return kind(name, f"{counter.replace('_', ' ')}, as the engine counts", labels=LABELS)


def exposition(*registries: CollectorRegistry) -> bytes:
    """The registries in Prometheus' text format, one after the other."""
    return b"".join(generate_latest(registry) for registry in registries)
