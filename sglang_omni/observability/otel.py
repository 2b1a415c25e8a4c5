"""Traces to an OpenTelemetry collector. Needs `pip install sglang_omni[tracing]`."""

from collections.abc import Callable, Mapping
from typing import Any

from sglang_omni.observability.trace import Span, Trace
from sglang_omni.protocol.errors import ConfigError

SERVICE = "sglang-omni"


def open_exporter(endpoint: str) -> "OtelExporter":
    """An exporter to an OTLP/HTTP endpoint, such as `http://127.0.0.1:4318`.

    Raises `ConfigError` where the packages are missing.
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
    """Turns a trace that has ended into a span for the request and one for each stage."""

    def __init__(self, processor: Any) -> None:
        """`processor` is one of OpenTelemetry's; it sends in a thread of its own."""
        from opentelemetry.sdk.resources import Resource
        from opentelemetry.sdk.trace import TracerProvider

        self._provider = TracerProvider(resource=Resource({"service.name": SERVICE}))
        self._provider.add_span_processor(processor)
        self._tracer = self._provider.get_tracer(SERVICE)

    def __call__(self, trace: Trace) -> None:
        """Hand a trace over."""
        from opentelemetry import trace as otel
        from opentelemetry.trace.propagation.tracecontext import TraceContextTextMapPropagator

        at = _clock(trace)
        above = TraceContextTextMapPropagator().extract({"traceparent": trace.parent or ""})
        ended = trace.ended if trace.ended is not None else trace.started_at
        request = self._tracer.start_span(
            trace.route, above, start_time=at(trace.started_at), attributes=_about(trace)
        )
        inside = otel.set_span_in_context(request)
        for span in trace.spans:
            self._stage(span, inside, at, ended)
        if trace.status is None or trace.status >= 500:
            request.set_status(otel.StatusCode.ERROR)
        request.end(at(ended))

    def close(self) -> None:
        """Send what is left."""
        self._provider.shutdown()

    def _stage(self, span: Span, inside: Any, at: Callable[[float], int], ended: float) -> None:
        from opentelemetry.trace import StatusCode

        stage = self._tracer.start_span(span.name, inside, start_time=at(span.started_at))
        stage.set_attribute("outputs", span.outputs)
        if span.first is not None:
            stage.add_event("first output", timestamp=at(span.first))
        if span.error is not None:
            stage.set_attribute("error.type", span.error)
            stage.set_status(StatusCode.ERROR)
        stage.end(at(ended if span.ended is None else span.ended))


def _clock(trace: Trace) -> Callable[[float], int]:
    """From the monotonic clock to nanoseconds since the epoch."""
    return lambda seconds: int((trace.began_at + seconds - trace.started_at) * 1e9)


def _about(trace: Trace) -> Mapping[str, Any]:
    about: dict[str, Any] = {"request.id": trace.id}
    if trace.status is not None:
        about["http.response.status_code"] = trace.status
    if trace.sound is not None:
        about |= {f"audio.{name}": value for name, value in vars(trace.sound).items()}
    return about
