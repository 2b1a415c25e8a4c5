"""Metric names follow the conventions of Prometheus."""

from prometheus_client.parser import text_string_to_metric_families
from prometheus_client.registry import CollectorRegistry

from sglang_omni.observability.metrics import EngineCollector, RequestMetrics, render_metrics
from sglang_omni.version import package_version
from tests.observability.test_dashboard import COUNTERS

NOT_BASE_UNITS = ("_ms", "_milliseconds", "_minutes", "_kb", "_mb", "_percent")


def families() -> dict[str, tuple[str, str]]:
    """The type and the help text of every metric, by the name that a scrape shows."""
    engines = CollectorRegistry()
    engine = {"state": "ready", "restarts": 1, "counters": dict.fromkeys(COUNTERS, 1.0)}
    engines.register(EngineCollector(lambda: {"talker": engine}))
    lines = render_metrics(RequestMetrics().registry, engines).decode().splitlines()
    comments = [line.split(" ", 3)[1:] for line in lines if line.startswith("# ")]
    types = {name: text for kind, name, text in comments if kind == "TYPE"}
    return {name: (types[name], text) for kind, name, text in comments if kind == "HELP"}


def test_counters_alone_end_in_total_and_every_metric_has_a_help_text() -> None:
    found = families()
    assert len(found) > 20
    for name, (kind, text) in found.items():
        # A counter's `_created` series is a gauge of its own.
        assert name.endswith("_total") == (kind == "counter"), name
        assert name.startswith("sgl_omni_"), name
        assert text, name


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
