"""Export of traces to an OpenTelemetry collector. Needs `pip install sglang_omni[tracing]`."""

from collections.abc import Callable, Mapping
from typing import Any

from sglang_omni.observability.trace import Span, Trace
from sglang_omni.protocol.errors import ConfigError

SERVICE = "sglang-omni"


def open_exporter(endpoint: str) -> "OtelExporter":
    """Return an exporter to an OTLP/HTTP endpoint, such as `http://127.0.0.1:4318`.

    Raises:
        ConfigError: The OpenTelemetry packages are not installed.
    """
    try:
        from opentelemetry.exporter.otlp.proto.http.trace_exporter import OTLPSpanExporter
        from opentelemetry.sdk.trace.export import BatchSpanProcessor
    except ImportError as error:
        raise ConfigError(
            "otlp_endpoint needs OpenTelemetry: pip install 'sglang_omni[tracing]'",
            param="otlp_endpoint",
        ) from error
    address = f"{endpoint.rstrip('/')}/v1/traces"
    return OtelExporter(BatchSpanProcessor(OTLPSpanExporter(address)))


class OtelExporter:
    """Exports a trace that has ended as a span for the request and one for each stage."""

    def __init__(self, processor: Any) -> None:
        """Export through an OpenTelemetry span processor, which sends in its own thread."""
        from opentelemetry.sdk.resources import Resource
        from opentelemetry.sdk.trace import TracerProvider

        self._provider = TracerProvider(resource=Resource({"service.name": SERVICE}))
        self._provider.add_span_processor(processor)
        self._tracer = self._provider.get_tracer(SERVICE)

    def __call__(self, trace: Trace) -> None:
        """Export a trace."""
        from opentelemetry import trace as otel
        from opentelemetry.trace.propagation.tracecontext import TraceContextTextMapPropagator

        to_epoch_ns = _make_clock(trace)
        parent = TraceContextTextMapPropagator().extract({"traceparent": trace.parent or ""})
        ended_at = trace.ended_at if trace.ended_at is not None else trace.started_at
        request = self._tracer.start_span(
            trace.route,
            parent,
            start_time=to_epoch_ns(trace.started_at),
            attributes=_build_attributes(trace),
        )
        context = otel.set_span_in_context(request)
        for span in trace.spans:
            self._export_stage(span, context, to_epoch_ns, ended_at)
        if trace.status is None or trace.status >= 500:
            request.set_status(otel.StatusCode.ERROR)
        request.end(to_epoch_ns(ended_at))

    def close(self) -> None:
        """Send the pending spans and shut down."""
        self._provider.shutdown()

    def _export_stage(
        self, span: Span, context: Any, to_epoch_ns: Callable[[float], int], ended_at: float
    ) -> None:
        from opentelemetry.trace import StatusCode

        stage = self._tracer.start_span(span.name, context, start_time=to_epoch_ns(span.started_at))
        stage.set_attribute("outputs", span.num_outputs)
        if span.replica is not None:
            stage.set_attribute("engine.replica", span.replica)
        if span.node:
            stage.set_attribute("engine.node", span.node)
        if span.first_output_at is not None:
            stage.add_event("first output", timestamp=to_epoch_ns(span.first_output_at))
        if span.error is not None:
            stage.set_attribute("error.type", span.error)
            stage.set_status(StatusCode.ERROR)
        stage.end(to_epoch_ns(ended_at if span.ended_at is None else span.ended_at))


def _make_clock(trace: Trace) -> Callable[[float], int]:
    """Return a function from the monotonic clock to nanoseconds since the epoch."""
    return lambda seconds: int((trace.started_at_epoch + seconds - trace.started_at) * 1e9)


def _build_attributes(trace: Trace) -> Mapping[str, Any]:
    attributes: dict[str, Any] = {"request.id": trace.shown_id}
    if trace.status is not None:
        attributes["http.response.status_code"] = trace.status
    if trace.playback is not None:
        attributes |= {f"audio.{name}": value for name, value in vars(trace.playback).items()}
    return attributes
