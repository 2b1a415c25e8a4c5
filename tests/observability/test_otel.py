"""What an OpenTelemetry collector is sent."""

import sys

import pytest

from sglang_omni.observability.otel import OtelExporter, open_exporter
from sglang_omni.observability.playback_stats import PlaybackStats
from sglang_omni.observability.trace import Span, Trace
from sglang_omni.protocol.errors import ConfigError

PARENT = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01"


def test_a_request_becomes_a_span_with_a_child_for_each_stage() -> None:
    export = pytest.importorskip("opentelemetry.sdk.trace.export")
    memory = pytest.importorskip("opentelemetry.sdk.trace.export.in_memory_span_exporter")
    kept = memory.InMemorySpanExporter()
    exporter = OtelExporter(export.SimpleSpanProcessor(kept))
    trace = Trace(
        "abc", started_at_epoch=1000.0, started_at=5.0, route="POST /v1/audio/speech", parent=PARENT
    )
    trace.status, trace.ended_at, trace.playback = 200, 7.0, PlaybackStats(0.5, 3.0, 0.0, 0.5)
    trace.spans = [
        Span("talker", 5.5, first_output_at=6.0, ended_at=6.5, num_outputs=3, error="EngineFailed")
    ]
    trace.spans[0].replica, trace.spans[0].node = 1, "node-b"
    exporter(trace)
    stage, request = kept.get_finished_spans()
    assert (request.name, request.start_time, request.end_time) == (
        "POST /v1/audio/speech",
        1000 * 10**9,
        1002 * 10**9,
    )
    assert f"{request.context.trace_id:032x}" == PARENT.split("-")[1]
    assert request.attributes["request.id"] == "abc"
    assert request.attributes["audio.audio_s"] == 3.0
    assert (stage.name, stage.parent.span_id) == ("talker", request.context.span_id)
    assert (stage.start_time, stage.end_time) == (1000_500_000_000, 1001_500_000_000)
    assert stage.events[0].timestamp == 1001 * 10**9
    assert stage.attributes["error.type"] == "EngineFailed"
    assert (stage.attributes["engine.replica"], stage.attributes["engine.node"]) == (1, "node-b")
    assert not stage.status.is_ok
    exporter.close()


def test_without_the_packages_it_says_what_to_install(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "opentelemetry.sdk.trace.export", None)
    with pytest.raises(ConfigError, match=r"sglang_omni\[tracing\]"):
        open_exporter("http://127.0.0.1:4318")
