"""The dashboard draws series that the server has, in units that fit."""

import json
import re
from collections.abc import Iterable
from pathlib import Path
from typing import Any

from prometheus_client import generate_latest
from prometheus_client.registry import CollectorRegistry

from sglang_omni.observability.engine_counters import ENGINE_COUNTERS
from sglang_omni.observability.metrics import EngineCollector, RequestMetrics
from sglang_omni.observability.shared_store_metrics import SharedStoreMetrics
from sglang_omni.observability.trace import Span, Trace

DASHBOARD = Path(__file__).parents[2] / "deploy" / "grafana" / "dashboard.json"
COUNTERS = tuple(ENGINE_COUNTERS)


def render_series() -> str:
    """What a server exposes that has served a request."""
    metrics, engines = RequestMetrics(), CollectorRegistry()
    trace = Trace("1", ended_at=1e12, spans=[Span("talker", 0, 0, 1, error="EngineFailed")])
    metrics.record_request(trace)
    SharedStoreMetrics(metrics.registry)
    counters = dict.fromkeys(COUNTERS, 1.0)
    engine = {"state": "ready", "restarts": 1, "counters": counters, "info": {"slots": 8}}
    engines.register(EngineCollector(lambda: {"talker": engine}))
    return (generate_latest(metrics.registry) + generate_latest(engines)).decode()


def list_series() -> set[str]:
    """The names of those series."""
    return set(re.findall(r"^# HELP (\S+)", render_series(), re.MULTILINE))


def list_used_series(expressions: Iterable[str]) -> set[str]:
    """The names of the server's series in expressions."""
    return {
        name.removesuffix("_bucket")
        for expression in expressions
        for name in re.findall(r"sgl_omni_\w+", expression)
    }


def read_panels() -> list[dict[str, Any]]:
    panels = json.loads(DASHBOARD.read_text(encoding="utf-8"))["panels"]
    return [panel for panel in panels if panel["type"] != "row"]


def test_every_series_of_the_dashboard_exists() -> None:
    panels = read_panels()
    expressions = [target["expr"] for panel in panels for target in panel["targets"]]
    assert len(panels) >= 20
    assert list_used_series(expressions) - list_series() == set()


def test_every_panel_says_what_it_shows_and_for_which_servers() -> None:
    for panel in read_panels():
        assert panel["description"].endswith("."), panel["title"]
        assert panel["fieldConfig"]["defaults"]["unit"], panel["title"]
        for target in panel["targets"]:
            assert 'instance=~"$instance"' in target["expr"], panel["title"]
            assert target["legendFormat"], panel["title"]


def test_panels_do_not_overlap() -> None:
    places = [panel["gridPos"] for panel in json.loads(DASHBOARD.read_text())["panels"]]
    cells = [
        (place["x"] + x, place["y"] + y)
        for place in places
        for x in range(place["w"])
        for y in range(place["h"])
    ]
    assert len(cells) == len(set(cells))
    assert all(0 <= x < 24 for x, _ in cells)
