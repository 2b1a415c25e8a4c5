"""Engines are placed, or refused, before anything is loaded."""

from pathlib import Path

import pytest

from sglang_omni.config.load import load_config
from sglang_omni.config.tree import Config
from sglang_omni.engines.remote.node_report import NodeReport
from sglang_omni.engines.runtime.gpus import Gpu, list_visible_gpus
from sglang_omni.entrypoints.startup import placement as startup
from sglang_omni.protocol.errors import StartupError
from tests.placement.clusters import cards_of, node, server_node
from tests.testing.golden import TINY

GB = 10**9


def config(**values: object) -> Config:
    return load_config(None, {"model_path": str(TINY), "device": "cuda", **values})


@pytest.fixture
def two_gpus(monkeypatch: pytest.MonkeyPatch) -> None:
    found = tuple(Gpu(index, "NVIDIA H200", 150 * GB, 149 * GB) for index in range(2))
    monkeypatch.setattr(startup, "list_visible_gpus", lambda: found)


@pytest.mark.usefixtures("two_gpus")
def test_auto_tells_its_plan_and_gives_every_engine_its_gpu() -> None:
    placed, shown = startup.apply_placement(config(placement="auto"), TINY)
    assert (placed.thinker.tp_size, placed.thinker.gpus) == (1, (0,))
    assert placed.talker.gpus == placed.audio_encoder.gpus == (1,)
    assert placed.image_encoder.gpus == (1,)
    assert "thinker in bfloat16 on 1 rank(s)" in shown
    assert "1: NVIDIA H200" in shown


@pytest.mark.usefixtures("two_gpus")
def test_by_hand_nothing_is_moved() -> None:
    assert startup.apply_placement(config(), TINY) == (config(), "")


@pytest.mark.parametrize("placement", ["auto", "manual"])
def test_what_cannot_fit_is_refused(placement: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(
        startup, "list_visible_gpus", lambda: (Gpu(0, "small", GB // 1000, GB // 1000),)
    )
    with pytest.raises(StartupError, match="does not fit"):
        startup.apply_placement(config(placement=placement), TINY)


def test_a_cpu_has_nothing_to_place() -> None:
    on_a_cpu = config(device="cpu", placement="auto")
    assert startup.apply_placement(on_a_cpu, TINY) == (on_a_cpu, "")


def test_without_a_driver_no_card_is_found(monkeypatch: pytest.MonkeyPatch) -> None:
    import pynvml

    def no_driver() -> None:
        raise pynvml.NVMLError(pynvml.NVML_ERROR_DRIVER_NOT_LOADED)

    monkeypatch.setattr(pynvml, "nvmlInit", no_driver)
    assert list_visible_gpus() == ()


CLUSTER = {
    "cluster.ray_address": "10.0.1.1:6379",
    "cluster.tls_ca": "/tls/ca.pem",
    "cluster.tls_certificate": "/tls/node.pem",
    "cluster.tls_key": "/tls/node.key",
}


@pytest.fixture
def surveyed(monkeypatch: pytest.MonkeyPatch) -> list[tuple[str, tuple[Path, ...]]]:
    """A cluster of this machine, `a`, and `b` with a card more; what was asked of it."""
    local, asked = cards_of(150, 1), []

    def survey(address: str, paths: tuple[Path, ...]) -> tuple[NodeReport, ...]:
        asked.append((address, paths))
        return server_node(local), node("b", cards_of(150, 1)), node("c", (), version="0.0.1")

    monkeypatch.setattr(startup, "survey_cluster", survey)
    monkeypatch.setattr(startup, "list_visible_gpus", lambda: local)
    return asked


def test_a_cluster_is_asked_for_what_its_machines_need(
    surveyed: list[tuple[str, tuple[Path, ...]]],
) -> None:
    startup.apply_placement(config(**CLUSTER), TINY)
    files = [Path("/tls/ca.pem"), Path("/tls/node.pem"), Path("/tls/node.key")]
    assert surveyed == [("10.0.1.1:6379", (TINY.absolute(), *files))]


@pytest.mark.usefixtures("surveyed")
def test_places_by_hand_are_shown() -> None:
    by_hand = config(**CLUSTER, **{"talker.place": "b", "media.place": "local,b"})
    placed, shown = startup.apply_placement(by_hand, TINY)
    assert placed == by_hand
    lines = shown.splitlines()
    assert lines[0] == "placement: by hand; in GB"
    assert lines[-4].split()[:2] == ["b", "0:"]
    assert lines[-3] == "  media on local, b"
    assert lines[-2] == "  machines of the cluster: a (this machine), b"
    assert lines[-1].startswith("  c is not used: it has sglang-omni 0.0.1")


@pytest.mark.usefixtures("surveyed")
def test_on_a_cpu_places_are_listed_and_checked() -> None:
    on_a_cpu = config(**CLUSTER, device="cpu", **{"talker.place": "b,local"})
    placed, shown = startup.apply_placement(on_a_cpu, TINY)
    assert placed == on_a_cpu
    assert shown.splitlines()[:2] == ["placement: on CPUs", "  talker on b, local"]
    for place, reason in (("z", "no node 'z'"), ("c", r"c cannot run engines: .*0\.0\.1")):
        bad = config(**CLUSTER, device="cpu", **{"talker.place": place})
        with pytest.raises(StartupError, match=rf"talker\.place: .*{reason}") as refused:
            startup.apply_placement(bad, TINY)
        assert refused.value.message.endswith("\nplaces that can be used: local, b")


@pytest.mark.usefixtures("surveyed")
@pytest.mark.parametrize("placement", ["auto", "manual"])
def test_a_place_that_is_not_there_is_refused(placement: str) -> None:
    bad = config(**CLUSTER, placement=placement, **{"talker.place": "b:1"})
    with pytest.raises(StartupError, match=r"b has no GPU 1; its GPUs: 0\n.*fits on b:0"):
        startup.apply_placement(bad, TINY)


def test_without_a_cluster_nothing_is_asked(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(startup, "survey_cluster", None)
    startup.apply_placement(config(), TINY)
