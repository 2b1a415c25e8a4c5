"""Metric names follow the conventions of Prometheus."""

from prometheus_client.parser import text_string_to_metric_families
from prometheus_client.registry import CollectorRegistry

from sglang_omni.observability.metrics import EngineCollector, RequestMetrics, render_metrics
from sglang_omni.version import package_version
from tests.observability.test_dashboard import render_series

NOT_BASE_UNITS = ("_ms", "_milliseconds", "_minutes", "_kb", "_mb", "_percent")


def families() -> dict[str, tuple[str, str]]:
    """The type and the help text of every metric, by the name that a scrape shows."""
    comments = [
        line.split(" ", 3)[1:] for line in render_series().splitlines() if line.startswith("# ")
    ]
    types = {name: text for kind, name, text in comments if kind == "TYPE"}
    return {name: (types[name], text) for kind, name, text in comments if kind == "HELP"}


def test_counters_alone_end_in_total_and_every_metric_has_a_help_text() -> None:
    found = families()
    assert len(found) > 20
    for name, (kind, text) in found.items():
        assert name.endswith("_total") == (kind == "counter"), name
        assert name.startswith("sgl_omni_"), name
        assert len(text.split()) > 1, name
        assert not name.endswith("_created"), name


def test_counters_of_other_engines_are_shown() -> None:
    engines = CollectorRegistry()
    engine = {"state": "ready", "counters": {"own_steps": 3.0}}
    engines.register(EngineCollector(lambda: {"toy": engine}))
    assert 'sgl_omni_engine_own_steps_total{engine="toy",replica="0"} 3.0' in (
        render_metrics(engines).decode()
    )


def test_units_are_base_units() -> None:
    assert not [name for name in families() if name.endswith(NOT_BASE_UNITS)]


def test_the_version_is_the_label_of_a_gauge() -> None:
    text = render_metrics(RequestMetrics().registry).decode()
    [family] = [f for f in text_string_to_metric_families(text) if f.name == "sgl_omni_build_info"]
    [sample] = family.samples
    assert (family.type, sample.labels, sample.value) == (
        "gauge",
        {"version": package_version()},
        1,
    )
