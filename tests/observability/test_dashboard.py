"""Every series that the dashboard draws is one that the server has."""

import json
import re
from pathlib import Path

from prometheus_client import generate_latest
from prometheus_client.registry import CollectorRegistry

from sglang_omni.observability.metrics import EngineCollector, RequestMetrics
from sglang_omni.observability.trace import Span, Trace

DASHBOARD = Path(__file__).parents[2] / "dashboards" / "grafana.json"
COUNTERS = (
    *("active_slots", "waiting", "steps", "patches", "step_seconds", "admitted", "queued"),
    *("kv_tokens_used", "kv_tokens_capacity", "rejected"),
    *(f"{kind}_cache_{what}" for kind in ("image", "audio") for what in ("hits", "misses")),
)


def series() -> str:
    """What a server exposes that has served a request."""
    metrics, engines = RequestMetrics(), CollectorRegistry()
    trace = Trace("1", ended_at=1e12, spans=[Span("talker", 0, 0, 1, error="EngineFailed")])
    metrics.record_request(trace)
    engine = {"state": "ready", "restarts": 1, "counters": dict.fromkeys(COUNTERS, 1.0)}
    engines.register(EngineCollector(lambda: {"talker": engine}))
    return (generate_latest(metrics.registry) + generate_latest(engines)).decode()


def test_every_series_of_the_dashboard_exists() -> None:
    there = set(re.findall(r"^# HELP (\S+)", series(), re.MULTILINE))
    panels = json.loads(DASHBOARD.read_text(encoding="utf-8"))["panels"]
    drawn = {
        name.removesuffix("_bucket")
        for panel in panels
        for target in panel["targets"]
        for name in re.findall(r"sgl_omni_\w+", target["expr"])
    }
    assert len(panels) >= 15
    assert drawn - there == set()
