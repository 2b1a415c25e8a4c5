"""`sgl-omni status`: what it says of a server, over bodies of `/ready` and over a running API."""

import json
from typing import Any

import pytest

from sglang_omni.entrypoints.cli.main import main
from sglang_omni.entrypoints.cli.status import describe, describe_load, format_age
from sglang_omni.entrypoints.http.middleware.auth import Access
from tests.entrypoints.http.fake import FakeBackend, Served, serving
from tests.entrypoints.http.middleware.test_auth import KEY, keys
from tests.server.running import free_port

NOW = 1_700_000_000.0


def engine(state: str = "ready", **fields: Any) -> dict[str, Any]:
    return {"state": state, "since": NOW - 200, "restarts": 0, "counters": {}, **fields}


@pytest.fixture(autouse=True)
def _talker(monkeypatch: pytest.MonkeyPatch) -> None:
    """The engine of the API in these tests, as a real one tells of itself."""
    monkeypatch.setattr(FakeBackend, "engines", lambda self: {"talker": engine()})


def test_engines_are_listed_with_their_load() -> None:
    body = {
        "status": "ready",
        "engines": {
            "thinker": engine(
                counters={
                    "running": 3,
                    "queued": 2,
                    "kv_tokens_used": 4096,
                    "kv_tokens_capacity": 16384,
                    "rejected": 1,
                },
                info={"max_running_requests": 16},
            ),
            "talker": engine(counters={"active_slots": 1}, info={"slots": 8}, restarts=2),
        },
    }
    assert describe("http://h", "ming", body, NOW) == [
        "http://h · ming · ready",
        "engine   state  for    restarts  load",
        "thinker  ready  3 min  0         3 of 16 running, 2 waiting, KV cache 25 %, 1 refused",
        "talker   ready  3 min  2         1 of 8 voices",
    ]


def test_machines_and_cards_are_listed_where_engines_have_some() -> None:
    body = {
        "status": "ready",
        "engines": {
            "thinker": engine(gpus=[0, 1], node=""),
            "talker": engine(gpus=[3], node="node-b", counters={"active_slots": 1}),
            "grammar": engine(gpus=[], node=""),
        },
        "shared_store": {"state": "ready", "since": NOW - 70, "last_error": None},
    }
    assert describe("http://h", "ming", body, NOW)[1:] == [
        "engine        machine  GPUs  state  for    restarts  load",
        "thinker       local    0, 1  ready  3 min  0",
        "talker        node-b   3     ready  3 min  0         1 voices",
        "grammar       local          ready  3 min  0",
        "shared store                 ready  1 min",
    ]
    # A thinker may be on several itself.
    further = [{"node": "machine 1", "gpus": [0, 1]}]
    spread = {"status": "ready", "engines": {"thinker": engine(gpus=[0, 1], companions=further)}}
    assert describe("http://h", "ming", spread, NOW)[1:] == [
        "engine   machine            GPUs         state  for    restarts  load",
        "thinker  local + machine 1  0, 1 + 0, 1  ready  3 min  0",
    ]
    # On one machine there is nothing to tell apart.
    here = {"status": "ready", "engines": {"talker": engine(gpus=[0], node="")}}
    assert (
        describe("http://h", "ming", here, NOW)[1] == "engine  GPUs  state  for    restarts  load"
    )


def test_a_start_has_its_progress_and_an_end_its_reason() -> None:
    body = {
        "status": "not_ready",
        "engines": {
            "thinker": engine("starting", progress="loading the thinker"),
            "talker": engine(progress="warming up", last_error="killed by signal 9", restarts=1),
        },
    }
    lines = describe("http://h", "ming", body, NOW)
    assert lines[0].endswith("· not ready")
    assert "starting: loading the thinker" in lines[2]
    assert "warming up" not in lines[3]
    assert lines[-1] == "talker: killed by signal 9"


def test_replicas_on_standby_and_those_that_drain_have_their_own_state() -> None:
    talkers = {
        "talker": engine(),
        "talker-1": engine("draining", progress="warming up"),
        "talker-2": engine("standby"),
        "talker-3": engine("starting", progress="loading the talker"),
    }
    assert describe("http://h", "ming", {"status": "ready", "engines": talkers}, NOW)[2:] == [
        "talker    ready                         3 min  0",
        "talker-1  draining                      3 min  0",
        "talker-2  standby                       3 min  0",
        "talker-3  starting: loading the talker  3 min  0",
    ]


def test_a_store_that_servers_share_is_listed_with_its_last_error() -> None:
    store = {"state": "ready", "since": NOW - 70, "last_error": None, "last_error_at": None}
    body = {"status": "ready", "engines": {"talker": engine()}, "shared_store": store}
    assert describe("http://h", "ming", body, NOW)[1:] == [
        "engine        state  for    restarts  load",
        "talker        ready  3 min  0",
        "shared store  ready  1 min",
    ]
    store |= {"state": "unavailable", "last_error": "ConnectionError"}
    lines = describe("http://h", "ming", body, NOW)
    assert lines[-2].startswith("shared store  unavailable")
    assert lines[-1] == "shared store: ConnectionError"


@pytest.mark.parametrize(
    ("seconds", "expected"),
    [(-1, "0 s"), (59, "59 s"), (60, "1 min"), (7300, "2 h"), (200_000, "2 d")],
)
def test_an_age_has_its_largest_unit(seconds: float, expected: str) -> None:
    assert format_age(seconds) == expected


def test_an_engine_without_counters_has_no_load() -> None:
    assert describe_load({}, {}) == ""


def test_a_running_server_is_described(server: Served, capsys: Any) -> None:
    assert main(["status", "--base-url", server.url]) == 0
    title, head, *rows = capsys.readouterr().out.splitlines()
    assert title == f"{server.url} · org/ming · ready"
    assert head.split() == ["engine", "state", "for", "restarts", "load"]
    assert rows
    assert main(["status", "--json", "--base-url", server.url]) == 0
    assert json.loads(capsys.readouterr().out)["status"] == "ready"


def test_a_server_that_is_not_ready_is_no_success(server: Served, capsys: Any) -> None:
    server.backend.ready = False
    try:
        assert main(["status", "--base-url", server.url]) == 1
    finally:
        server.backend.reset()
    assert "not ready" in capsys.readouterr().out


def test_a_key_is_sent(capsys: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OMNI_KEY", KEY)
    with serving(Access(keys(KEY))) as served:
        assert main(["status", "--base-url", served.url]) != 0
        assert main(["status", "--base-url", served.url, "--api-key", "env:OMNI_KEY"]) == 0
    assert "engine" in capsys.readouterr().out


def test_no_server_is_an_error(capsys: Any) -> None:
    assert main(["status", "--base-url", f"http://127.0.0.1:{free_port()}"]) != 0
    assert "cannot reach a server" in capsys.readouterr().err
