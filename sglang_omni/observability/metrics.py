"""Prometheus metrics: of requests when they end, and of engines when they are scraped."""

import collections
from collections.abc import Callable, Iterator, Mapping
from typing import Any

from prometheus_client import (
    CollectorRegistry,
    Counter,
    Gauge,
    Histogram,
    disable_created_metrics,
    generate_latest,
)
from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily, Metric
from prometheus_client.registry import Collector

from sglang_omni.observability.engine_counters import describe_counter
from sglang_omni.observability.trace import Trace
from sglang_omni.version import package_version

# A series for the time at which each series began: nothing here uses them.
disable_created_metrics()

PREFIX = "sgl_omni"
# The route label of requests that were refused before routing.
PROTOCOL_ROUTE = "protocol"
SECONDS_BUCKETS = (
    *(0.005, 0.0075, 0.01, 0.0125, 0.015, 0.02, 0.025, 0.05, 0.1, 0.2, 0.3, 0.5, 0.75),
    *(1, 1.5, 2.5, 5, 10, 30, 60, 120),
)
REAL_TIME_RATIO_BUCKETS = (0.01, 0.02, 0.05, 0.1, 0.2, 0.3, 0.5, 0.75, 1, 1.5, 2, 5)
STALL_BUCKETS = (0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10)
# The node is "" on the server's own machine, which for Prometheus is no label at all.
LABELS = ("engine", "replica", "node")
# A replica that drains serves what it has.
SERVING_STATES = ("ready", "draining")

Engines = Callable[[], Mapping[str, Mapping[str, Any]]]


class RequestMetrics:
    """Metrics of requests. It owns a registry, so that two servers share no numbers."""

    def __init__(self) -> None:
        self.registry = CollectorRegistry()
        build = self._create(
            Gauge, "build_info", "Always 1; the label has the version", ["version"]
        )
        build.labels(package_version()).set(1)
        self._requests = self._create(
            Counter, "requests", "Requests that have ended, refused ones too", ["route", "status"]
        )
        self._refusals = self._create(
            Counter, "refusals", "Requests refused by the API process, by reason", ["reason"]
        )
        self.in_flight = self._create(Gauge, "requests_in_flight", "Requests being served", [])
        self.tasks = self._create(Gauge, "tasks", "Tasks of the event loop", [])
        self.stalls = self._create(
            Histogram,
            "event_loop_stall_seconds",
            "How late the event loop wakes up, sampled twenty times a second",
            [],
            buckets=STALL_BUCKETS,
        )
        self._durations = self._create_seconds(
            "request_duration_seconds", "Time from arrival to the last byte", ["route"]
        )
        self._stages = self._create_seconds(
            "stage_duration_seconds", "Duration of a stage", ["stage"]
        )
        self._first_outputs = self._create_seconds(
            "stage_first_output_seconds", "Time to the first output of a stage", ["stage"]
        )
        self._failures = self._create(
            Counter, "stage_failures", "Stages that failed or were cancelled", ["stage", "error"]
        )
        self._ttft = self._create_seconds(
            "time_to_first_token_seconds", "Time from arrival to the first text", ["route"]
        )
        self._ttfa = self._create_seconds(
            "time_to_first_audio_seconds", "Time from arrival to the first audio", ["route"]
        )
        self._real_time_ratios = self._create(
            Histogram,
            "real_time_ratio",
            "Seconds of generation for a second of audio; above 1 the listener waits",
            ["route"],
            buckets=REAL_TIME_RATIO_BUCKETS,
        )
        self._audio = self._create(
            Counter, "audio_seconds", "Seconds of generated audio", ["route"]
        )
        self._underruns = self._create(
            Counter, "underrun_seconds", "Seconds of silence where audio was due", ["route"]
        )

    def record_request(self, trace: Trace) -> None:
        """Count a request that has ended."""
        assert trace.ended_at is not None
        route = trace.route
        self._requests.labels(route, str(trace.status or "gone")).inc()
        self._durations.labels(route).observe(trace.ended_at - trace.started_at)
        for span in trace.spans:
            if span.ended_at is not None:
                self._stages.labels(span.name).observe(span.ended_at - span.started_at)
            if span.first_output_at is not None:
                seconds = span.first_output_at - span.started_at
                self._first_outputs.labels(span.name).observe(seconds)
            if span.error is not None:
                self._failures.labels(span.name, span.error).inc()
        if trace.first_text_at is not None:
            self._ttft.labels(route).observe(trace.first_text_at - trace.started_at)
        if trace.playback is not None:
            self._ttfa.labels(route).observe(trace.playback.first_s)
            self._real_time_ratios.labels(route).observe(trace.playback.rtf)
            self._audio.labels(route).inc(trace.playback.audio_s)
            self._underruns.labels(route).inc(trace.playback.underrun_s)

    def record_protocol_refusal(self, status: int) -> None:
        """Count a request that was refused before routing, because it violates the protocol."""
        self._requests.labels(PROTOCOL_ROUTE, str(status)).inc()

    def record_refusal(self, reason: str) -> None:
        """Count a refusal. `reason` is one of a few names in the code."""
        self._refusals.labels(reason).inc()

    def _create(self, kind: Any, name: str, text: str, labels: list[str], **options: Any) -> Any:
        return kind(f"{PREFIX}_{name}", text, labels, registry=self.registry, **options)

    def _create_seconds(self, name: str, text: str, labels: list[str]) -> Any:
        return self._create(Histogram, name, text, labels, buckets=SECONDS_BUCKETS)


class EngineCollector(Collector):
    """Metrics of engines, read at each scrape."""

    def __init__(self, engines: Engines) -> None:
        self._engines = engines

    def collect(self) -> Iterator[Metric]:
        """Yield the state, the restarts and every counter of every engine.

        A replica that nobody needs, or not yet, is neither up nor down.
        """
        up = GaugeMetricFamily(
            f"{PREFIX}_engine_up", "1 if the engine is ready or drains, else 0", labels=LABELS
        )
        restarts = CounterMetricFamily(
            f"{PREFIX}_engine_restarts", "Restarts after a crash or a hang", labels=LABELS
        )
        replicas = GaugeMetricFamily(
            f"{PREFIX}_engine_replicas", "Replicas in this state", labels=("engine", "state")
        )
        slots = GaugeMetricFamily(
            f"{PREFIX}_engine_slots", "Voices that can speak at a time", labels=LABELS
        )
        families: dict[str, Metric] = {}
        engines = self._engines()
        for state, count in _count_states(engines).items():
            replicas.add_metric(state, count)
        for name, engine in engines.items():
            kind, replica = engine.get("kind", name), str(engine.get("replica", 0))
            labels = (kind, replica, engine.get("node", ""))
            if not _is_standing_by(engine):
                up.add_metric(labels, engine.get("state") in SERVING_STATES)
            restarts.add_metric(labels, engine.get("restarts", 0))
            if "slots" in (info := engine.get("info") or {}):
                slots.add_metric(labels, info["slots"])
            for counter, value in engine.get("counters", {}).items():
                family = families.setdefault(counter, _create_family(counter))
                family.add_metric(labels, value)  # type: ignore[attr-defined]
        yield from (up, replicas, restarts, slots, *families.values())


def _count_states(engines: Mapping[str, Mapping[str, Any]]) -> dict[tuple[str, str], int]:
    """Return the number of replicas by kind and state."""
    return collections.Counter(
        (engine.get("kind", name), str(engine.get("state"))) for name, engine in engines.items()
    )


def _is_standing_by(engine: Mapping[str, Any]) -> bool:
    """Return whether a replica is on standby, or has left it and is not loaded yet."""
    is_starting = engine.get("autoscaled", False) and engine.get("state") == "starting"
    return is_starting or engine.get("state") == "standby"


def _create_family(name: str) -> Metric:
    counter = describe_counter(name)
    kind = GaugeMetricFamily if counter.is_gauge else CounterMetricFamily
    return kind(f"{PREFIX}_engine_{name}", counter.text, labels=LABELS)


def render_metrics(*registries: CollectorRegistry) -> bytes:
    """Return the registries in Prometheus' text format, one after the other."""
    return b"".join(generate_latest(registry) for registry in registries)
