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
    other = {**engine, "kind": "toy", "replica": 1, "node": "node-b"}
    engines.register(EngineCollector(lambda: {"toy": engine, "toy-1": other}))
    shown = render_metrics(engines).decode()
    assert 'sgl_omni_engine_own_steps_total{engine="toy",node="",replica="0"} 3.0' in shown
    assert 'sgl_omni_engine_up{engine="toy",node="node-b",replica="1"} 1.0' in shown


def test_a_replica_on_standby_is_neither_up_nor_down() -> None:
    states = {
        "talker": ("ready", False),
        "talker-1": ("draining", True),
        "talker-2": ("standby", True),
        "talker-3": ("starting", True),
        "talker-4": ("restarting", True),
        "thinker": ("starting", False),
    }
    described = {
        name: {
            "state": state,
            "autoscaled": autoscaled,
            "kind": name.partition("-")[0],
            "replica": int(name.partition("-")[2] or 0),
        }
        for name, (state, autoscaled) in states.items()
    }
    engines = CollectorRegistry()
    engines.register(EngineCollector(lambda: described))
    samples = [
        sample
        for family in text_string_to_metric_families(render_metrics(engines).decode())
        for sample in family.samples
    ]
    assert {
        (sample.labels["engine"], sample.labels["replica"]): sample.value
        for sample in samples
        if sample.name == "sgl_omni_engine_up"
    } == {
        ("talker", "0"): 1,
        ("talker", "1"): 1,
        ("talker", "4"): 0,
        # It was to be up from the start.
        ("thinker", "0"): 0,
    }
    assert {
        (sample.labels["engine"], sample.labels["state"]): sample.value
        for sample in samples
        if sample.name == "sgl_omni_engine_replicas"
    } == {
        ("thinker", "starting"): 1,
        **{("talker", state): 1 for name, (state, _) in states.items() if name != "thinker"},
    }


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
