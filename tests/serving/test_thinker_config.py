"""A thinker whose ranks are on several machines."""

import pytest

from sglang_omni.config.load import load_config
from sglang_omni.engines.remote.contract import PROXY_MODULE, RankAddress, RemoteSettings
from sglang_omni.engines.runtime.process import EngineProcess
from sglang_omni.engines.thinker.launch import build_server_args
from sglang_omni.entrypoints.cli.node import build_launch
from sglang_omni.protocol.errors import ConfigError
from sglang_omni.serving.engine_states import describe_process
from sglang_omni.serving.thinker_config import build_thinker_spec
from tests.testing.golden import TINY

TLS = {"cluster.tls_ca": "/ca", "cluster.tls_certificate": "/node", "cluster.tls_key": "/key"}
NODES = {
    "device": "cuda",
    "thinker.nodes": 2,
    "thinker.gpus": "4,5",
    "thinker.dist_init_addr": "10.0.0.1:20000",
    "model_path": str(TINY),
    **TLS,
}


def test_each_machine_has_its_share_of_the_ranks(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("CUDA_VISIBLE_DEVICES", raising=False)
    spec = build_thinker_spec(load_config(None, NODES), TINY)
    assert (spec.settings.tp_size, spec.settings.node_rank) == (4, 0)
    assert spec.env["CUDA_VISIBLE_DEVICES"] == "4,5"
    (other,) = spec.companions
    assert (other.name, other.module) == ("thinker-node-1", PROXY_MODULE)
    remote: RemoteSettings = other.settings
    assert remote.listen == RankAddress("10.0.0.1", 20_001, 1)
    assert (remote.settings.tp_size, remote.settings.node_rank) == (4, 1)
    for settings, rank in ((spec.settings, 0), (remote.settings, 1)):
        arguments = build_server_args(settings, 1234)
        assert arguments["nnodes"] == 2
        assert arguments["node_rank"] == rank
        assert arguments["dist_init_addr"] == "10.0.0.1:20000"


def test_health_says_on_which_machines_a_thinker_is() -> None:
    spread = EngineProcess(build_thinker_spec(load_config(None, NODES), TINY))
    state = describe_process(spread)
    assert (state["node"], state["gpus"]) == ("", (4, 5))
    assert state["companions"] == [{"node": "machine 1", "gpus": (4, 5)}]
    alone = EngineProcess(build_thinker_spec(load_config(None, {"device": "cpu"}), TINY))
    assert "companions" not in describe_process(alone)


def test_a_further_machine_derives_its_part_from_the_same_options() -> None:
    launch = build_launch(load_config(None, NODES), 1)
    assert (launch.name, launch.address) == ("thinker-node-1", ("10.0.0.1", 20_001))
    assert launch.env["CUDA_VISIBLE_DEVICES"] == "4,5"
    for rank in (0, 2):
        with pytest.raises(ConfigError, match=r"thinker\.nodes is 2"):
            build_launch(load_config(None, NODES), rank)


def test_one_machine_needs_nothing_of_it() -> None:
    spec = build_thinker_spec(load_config(None, {"device": "cpu"}), TINY)
    assert (spec.companions, spec.node) == ((), "")
    assert "nnodes" not in build_server_args(spec.settings, 1234)


@pytest.mark.parametrize(
    ("changed", "reason"),
    [
        ({"thinker.tp_size": 3, "thinker.gpus": ""}, r"thinker\.nodes \(2\) must divide"),
        ({"thinker.tp_size": 2}, "1 different GPUs of each of 2 machines"),
        ({"thinker.dist_init_addr": "10.0.0.1"}, "must be HOST:PORT"),
        ({"thinker.dist_init_addr": "10.0.0.1:65535"}, "must be HOST:PORT"),
        ({"thinker.nodes": 1}, r"only for thinker\.nodes above 1"),
        ({"cluster.bind": "everywhere"}, r"cluster\.bind"),
    ],
)
def test_what_contradicts_is_named(changed: dict[str, object], reason: str) -> None:
    with pytest.raises(ConfigError, match=reason):
        build_thinker_spec(load_config(None, {**NODES, **changed}), TINY)


@pytest.mark.parametrize("missing", TLS)
def test_ranks_on_other_machines_need_certificates(missing: str) -> None:
    options = {name: value for name, value in NODES.items() if name != missing}
    with pytest.raises(ConfigError, match=missing):
        build_thinker_spec(load_config(None, options), TINY)


def test_the_type_of_the_cache_reaches_sglang_and_is_checked_before_the_start() -> None:
    options = {"device": "cuda", "thinker.kv_cache_dtype": "fp8_e4m3", "model_path": str(TINY)}
    spec = build_thinker_spec(load_config(None, options), TINY)
    assert build_server_args(spec.settings, 1234)["kv_cache_dtype"] == "fp8_e4m3"
    with pytest.raises(ConfigError, match="needs a GPU"):
        build_thinker_spec(load_config(None, options | {"device": "cpu"}), TINY)
