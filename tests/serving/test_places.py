"""Replicas run where the options `place` name."""

import subprocess
import sys
from collections.abc import Mapping

import pytest

from sglang_omni.config.load import load_config
from sglang_omni.config.tree import Config
from sglang_omni.engines.remote.contract import PROXY_MODULE, RemoteSettings
from sglang_omni.engines.runtime.process import ProcessSpec
from sglang_omni.engines.runtime.subprocess import ENGINE_MODULE
from sglang_omni.protocol.errors import ConfigError
from sglang_omni.serving.engine_config import build_encoder_specs, build_talker_specs
from sglang_omni.serving.image_config import build_image_specs
from sglang_omni.serving.media_engines import MediaEngines
from tests.testing.golden import TINY

CLUSTER = {
    "cluster.ray_address": "10.0.0.1:6379",
    "cluster.tls_ca": "/tls/ca.pem",
    "cluster.tls_certificate": "/tls/node.pem",
    "cluster.tls_key": "/tls/node.key",
}


def config(values: Mapping[str, object], cluster: Mapping[str, object] = CLUSTER) -> Config:
    return load_config(None, {**cluster, **values})


def remote(spec: ProcessSpec) -> RemoteSettings:
    """What a proxy is told."""
    assert spec.module == PROXY_MODULE
    assert isinstance(spec.settings, RemoteSettings)
    assert (spec.settings.name, spec.settings.node) == (spec.name, spec.node)
    return spec.settings


def test_a_talker_on_each_machine() -> None:
    asked = config({"device": "cuda", "talker.place": "local:1,node-b:1,node-b,local:2"})
    here, there, first, also_here = build_talker_specs(asked, TINY)
    assert [here.node, there.node, first.node] == ["", "node-b", "node-b"]
    assert (here.module, here.settings.device) == (ENGINE_MODULE, "cuda:1")
    assert also_here.settings.device == "cuda:2"
    assert "CUDA_VISIBLE_DEVICES" not in here.env
    # An engine on another machine sees its own card only.
    assert remote(there).settings.device == "cuda:0"
    assert remote(there).env["CUDA_VISIBLE_DEVICES"] == "1"
    assert remote(first).env["CUDA_VISIBLE_DEVICES"] == "0"
    assert [spec.name for spec in (here, there, first)] == ["talker", "talker-1", "talker-2"]
    assert {spec.kind for spec in (here, there, first)} == {"talker"}
    assert there.env == {}


def test_talkers_on_cpus() -> None:
    here, there = build_talker_specs(config({"device": "cpu", "talker.place": "local,b"}), TINY)
    assert here.settings.device == remote(there).settings.device == "cpu"
    assert "CUDA_VISIBLE_DEVICES" not in remote(there).env


def test_encoders_on_another_machine(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("CUDA_VISIBLE_DEVICES", "6,7")
    places = {
        "image_encoder.place": "b:0,b:1,local:0,local:1",
        "audio_encoder.place": "c:3",
        "image_encoder.tp_size": "2",
    }
    specs = build_encoder_specs(config({"device": "cuda", **places}), TINY)
    there, here = specs["image"]
    assert remote(there).settings.gpus == (0, 1)
    assert remote(there).env["CUDA_VISIBLE_DEVICES"] == "0,1"
    assert here.env["CUDA_VISIBLE_DEVICES"] == "6,7"
    (audio,) = specs["audio"]
    assert remote(audio).env["CUDA_VISIBLE_DEVICES"] == "3"


def test_the_encoder_of_a_cpu_has_one_place() -> None:
    specs = build_encoder_specs(config({"device": "cpu", "image_encoder.place": "b"}), TINY)
    (spec,) = {replicas[0].name: replicas[0] for replicas in specs.values()}.values()
    assert remote(spec).settings.audio
    with pytest.raises(ConfigError, match=r"set image_encoder\.place"):
        build_encoder_specs(config({"device": "cpu", "audio_encoder.place": "b"}), TINY)


def test_an_image_engine_on_another_machine() -> None:
    (spec,) = build_image_specs(config({"device": "cuda", "image.place": "b:2"}), TINY)
    assert remote(spec).settings.device == "cuda:0"
    assert remote(spec).env["CUDA_VISIBLE_DEVICES"] == "2"


def test_decoders_take_the_places_by_turns() -> None:
    asked = config({"device": "cpu", "media.place": "local,b", "media.processes": "3"})
    processes = MediaEngines(asked, TINY).decoders.processes
    assert [process.spec.node for process in processes.values()] == ["", "b", ""]


@pytest.mark.parametrize(
    ("option", "value", "reason"),
    [
        ("talker.place", "b:x", "neither NODE nor NODE:GPU"),
        ("talker.place", ":1", "neither NODE nor NODE:GPU"),
        ("talker.gpus", "1", "cannot both be set"),
        ("talker.replicas", "2", "only for a CPU without"),
        ("cluster.bind", "10.0.0", "cluster.bind"),
    ],
)
def test_what_cannot_be_placed_is_named(option: str, value: str, reason: str) -> None:
    with pytest.raises(ConfigError, match=reason):
        build_talker_specs(config({"device": "cuda", "talker.place": "b", option: value}), TINY)


def test_a_card_on_a_cpu_is_named() -> None:
    with pytest.raises(ConfigError, match="names a GPU"):
        build_talker_specs(config({"device": "cpu", "talker.place": "b:0"}), TINY)


@pytest.mark.parametrize("places", ["b:0", "b:0,c:0", "b:1,b:1", "b:0,b:1,b:2"])
def test_the_ranks_of_a_replica_share_a_machine(places: str) -> None:
    asked = {"device": "cuda", "image_encoder.tp_size": "2", "image_encoder.place": places}
    with pytest.raises(ConfigError, match=r"image_encoder\.place must name"):
        build_encoder_specs(config(asked), TINY)


@pytest.mark.parametrize("missing", CLUSTER)
def test_every_option_of_the_cluster_is_needed(missing: str) -> None:
    cluster = {name: value for name, value in CLUSTER.items() if name != missing}
    with pytest.raises(ConfigError, match=missing):
        build_talker_specs(config({"device": "cpu", "talker.place": "b"}, cluster), TINY)


def test_on_one_machine_neither_ray_nor_a_link_is_imported() -> None:
    program = (
        "import sys; from sglang_omni.entrypoints.cli.main import main; "
        "from sglang_omni.serving.server import Server; "
        "assert 'ray' not in sys.modules; "
        "assert 'sglang_omni.engines.remote.links' not in sys.modules; "
        "assert 'sglang_omni.engines.remote.ray_nodes' not in sys.modules"
    )
    subprocess.run([sys.executable, "-c", program], check=True)
