"""What gateways read: version, model, server, load; and who may read it."""

from collections.abc import Iterator
from typing import Any

import httpx
import pytest

from sglang_omni.entrypoints.server_info import build_loads
from sglang_omni.version import package_version
from tests.entrypoints.http.fake import FakeBackend, Served, serving
from tests.entrypoints.http.middleware.test_auth import KEY, LOCKED, bearer

THINKER: dict[str, Any] = {
    "state": "ready",
    "kind": "thinker",
    "replica": 0,
    "info": {"context_length": 4096, "max_running_requests": 16},
    "counters": {
        "running": 4.0,
        "waiting": 1.0,
        "queued": 2.0,
        "kv_tokens_used": 256.0,
        "kv_tokens_requested": 300.0,
        "kv_tokens_capacity": 1024.0,
        "waiting_tokens": 40.0,
        "tokens_per_second": 12.5,
        "cache_hit_rate": 0.5,
    },
}
STARTING = {"state": "starting", "kind": "thinker", "replica": 1, "info": None, "counters": {}}
ENGINES = {"thinker": THINKER, "thinker-1": STARTING, "talker": {"kind": "talker", "counters": {}}}
LOAD = {
    "dp_rank": 0,
    "num_running_reqs": 4,
    "num_waiting_reqs": 3,
    "num_waiting_uncached_tokens": 40,
    "num_total_reqs": 7,
    "num_used_tokens": 256,
    "num_total_tokens": 300,
    "max_total_num_tokens": 1024,
    "max_running_requests": 16,
    "token_usage": 0.25,
    "gen_throughput": 12.5,
    "cache_hit_rate": 0.5,
    "utilization": 0.25,
}


@pytest.fixture
def engines(backend: FakeBackend, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(backend, "engines", lambda: ENGINES)


@pytest.fixture(scope="module")
def locked() -> Iterator[Served]:
    with serving(LOCKED) as served:
        yield served


def test_the_load_of_each_thinker_is_told(http: httpx.Client, engines: None) -> None:
    answer = http.get("/v1/loads").json()
    assert answer.keys() == {"timestamp", "version", "loads"}
    first, second = answer["loads"]
    assert first == LOAD
    # Gateways parse counts as integers.
    assert all(isinstance(first[name], int) for name in first if name.startswith(("num", "max")))
    assert second == {name: 1 if name == "dp_rank" else 0 for name in LOAD}
    assert http.get("/v1/loads", params={"dp_rank": 1}).json()["loads"] == [second]
    assert http.get("/v1/loads", params={"include": "core, queues"}).json()["loads"] == [
        first,
        second,
    ]


def test_the_former_route_tells_it_in_its_form(http: httpx.Client, engines: None) -> None:
    first, _ = http.get("/get_load").json()
    assert first.pop("ts_tic") > 0
    assert first == {
        "dp_rank": 0,
        "num_reqs": 7,
        "num_waiting_reqs": 3,
        "num_tokens": 300,
        "num_pending_tokens": 44,
    }


def test_without_a_thinker_there_is_no_load() -> None:
    assert build_loads({"talker": {"state": "ready"}}) == []


@pytest.mark.parametrize(
    ("params", "param"),
    [
        ({"dp_rank": "a"}, "dp_rank"),
        ({"include": "core,disk"}, "include"),
        ({"format": "prometheus"}, "format"),
    ],
)
def test_a_bad_parameter_is_named(http: httpx.Client, params: dict[str, str], param: str) -> None:
    reply = http.get("/v1/loads", params=params)
    assert (reply.status_code, reply.json()["error"]["param"]) == (400, param)


@pytest.mark.parametrize("path", ["/server_info", "/get_server_info"])
def test_the_server_is_described(http: httpx.Client, engines: None, path: str) -> None:
    info = http.get(path).json()
    assert info["version"] == http.get("/version").json()["version"] == package_version()
    assert info["served_model_name"] == info["model_path"] == "org/ming"
    assert (info["context_length"], info["max_running_requests"]) == (32_768, 16)
    assert (info["dp_size"], info["max_total_num_tokens"]) == (2, 1024)
    assert info["internal_states"][0] == LOAD


@pytest.mark.parametrize("path", ["/model_info", "/get_model_info"])
@pytest.mark.parametrize("accepts_media", [True, False])
def test_the_model_is_described(
    http: httpx.Client,
    backend: FakeBackend,
    monkeypatch: pytest.MonkeyPatch,
    path: str,
    accepts_media: bool,
) -> None:
    monkeypatch.setattr(backend, "accepts_media", accepts_media)
    info = http.get(path).json()
    assert (info["model_path"], info["tokenizer_path"]) == ("org/ming", "org/ming")
    assert info["is_generation"] is True
    assert info["has_image_understanding"] is info["has_audio_understanding"] is accepts_media


@pytest.mark.parametrize(
    "path",
    [
        *("/server_info", "/get_server_info", "/model_info", "/get_model_info"),
        *("/v1/loads", "/get_load"),
    ],
)
def test_what_tells_of_the_server_needs_a_key_and_holds_none(locked: Served, path: str) -> None:
    with httpx.Client(base_url=locked.url) as http:
        assert http.get(path).status_code == 401
        reply = http.get(path, headers=bearer(KEY))
        assert reply.status_code == 200
        assert KEY not in reply.text
        assert locked.backend.folder.name not in reply.text


@pytest.mark.parametrize("path", ["/version", "/ping", "/health_generate"])
def test_probes_need_no_key(locked: Served, path: str) -> None:
    with httpx.Client(base_url=locked.url) as http:
        reply = http.get(path)
        assert reply.status_code == 200
        assert "engines" not in reply.json()


def test_probes_under_second_names_answer_alike(http: httpx.Client, backend: FakeBackend) -> None:
    backend.ready = False
    for path, status in (("/health", 200), ("/ping", 200), ("/ready", 503)):
        assert http.get(path).status_code == status
    assert http.get("/health_generate").status_code == 503
    assert http.get("/health_generate").json() == http.get("/ready").json()


@pytest.mark.parametrize("path", ["/v1/loads", "/server_info", "/model_info"])
def test_gateways_are_answered_while_the_server_drains(
    http: httpx.Client, backend: FakeBackend, path: str
) -> None:
    backend.draining.set()
    assert http.get(path).status_code == 200
    assert http.get("/v1/models").status_code == 503
