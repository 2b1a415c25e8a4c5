"""Metrics and timelines, over HTTP."""

import re
import time
from collections.abc import Iterator
from typing import Any

import httpx
import openai
import pytest
from prometheus_client.parser import text_string_to_metric_families

from sglang_omni.entrypoints.cli.main import main
from sglang_omni.entrypoints.http.middleware.auth import Access
from sglang_omni.pipeline.request import AudioDelta, TextDelta
from sglang_omni.protocol.errors import EngineFailed
from sglang_omni.version import package_version
from tests.entrypoints.http.fake import (
    TONE_S,
    FakeBackend,
    Served,
    hanging,
    playing,
    serving,
    tone,
)
from tests.entrypoints.http.middleware.test_auth import ADMIN, KEY, OTHER, bearer, keys

CHAT = {"model": "org/ming", "messages": [{"role": "user", "content": "hello you"}]}
SPOKEN = {**CHAT, "modalities": ["text", "audio"]}
ROUTE = "POST /v1/chat/completions"


def samples(http: httpx.Client, **headers: str) -> dict[tuple[str, ...], float]:
    """Every sample, by its name and the values of its labels."""
    text = http.get("/metrics", headers=headers).text
    families = text_string_to_metric_families(text)
    return {
        (sample.name, *sample.labels.values()): sample.value
        for family in families
        for sample in family.samples
    }


def ended(http: httpx.Client, request_id: str) -> dict[str, Any]:
    """The timeline of a request once it has ended: a moment after its last byte is here."""
    while not (found := http.get(f"/v1/requests/{request_id}").json())["ended"]:
        time.sleep(0.01)
    return dict(found)


def test_requests_are_counted_with_what_was_heard(http: httpx.Client) -> None:
    before = samples(http)
    answered = http.post("/v1/chat/completions", json=SPOKEN)
    refused = http.post("/v1/chat/completions", json={})
    assert answered.status_code == 200
    for reply in (answered, refused):
        ended(http, reply.headers["x-request-id"])
    after = samples(http)

    def more(*key: str) -> float:
        return after.get(key, 0) - before.get(key, 0)

    assert more("sgl_omni_requests_total", ROUTE, "200") == 1
    assert more("sgl_omni_requests_total", ROUTE, "400") == 1
    assert more("sgl_omni_time_to_first_token_seconds_count", ROUTE) == 1
    assert more("sgl_omni_time_to_first_audio_seconds_count", ROUTE) == 1
    assert more("sgl_omni_audio_seconds_total", ROUTE) == pytest.approx(2 * TONE_S)
    assert more("sgl_omni_real_time_ratio_count", ROUTE) == 1
    assert after["sgl_omni_build_info", package_version()] == 1
    assert after["sgl_omni_requests_in_flight",] == 1  # The one that asks for metrics.


def test_engines_are_shown_as_they_are(
    http: httpx.Client, backend: FakeBackend, monkeypatch: pytest.MonkeyPatch
) -> None:
    state = {"state": "ready", "restarts": 2, "counters": {"active_slots": 3, "steps": 9}}
    other = {**state, "state": "restarting", "kind": "talker", "replica": 1, "node": "b"}
    engines = {"talker": state, "talker-1": other}
    monkeypatch.setattr(backend, "engines", lambda: engines)
    shown = samples(http)
    assert shown["sgl_omni_engine_up", "talker", "", "0"] == 1
    assert shown["sgl_omni_engine_up", "talker", "b", "1"] == 0
    assert shown["sgl_omni_engine_restarts_total", "talker", "", "0"] == 2
    assert shown["sgl_omni_engine_active_slots", "talker", "", "0"] == 3
    assert shown["sgl_omni_engine_steps_total", "talker", "", "0"] == 9


def test_an_address_nobody_declared_makes_no_series_of_its_own(http: httpx.Client) -> None:
    for number in range(3):
        http.get(f"/v1/nowhere/{number}")
    assert not [key for key in samples(http) if "nowhere" in str(key)]


def test_a_timeline_is_found_by_the_id_of_the_response(
    http: httpx.Client, server: Served, capsys: pytest.CaptureFixture[str]
) -> None:
    request_id = http.post("/v1/chat/completions", json=SPOKEN).headers["x-request-id"]
    found = ended(http, request_id)
    assert (found["route"], found["status"], found["ended"]) == (ROUTE, 200, True)
    assert found["sound"]["audio_s"] == pytest.approx(2 * TONE_S)
    assert main(["timeline", request_id, "--base-url", server.url]) == 0
    printed = capsys.readouterr().out
    assert re.match(rf"{request_id}  {ROUTE}  200  ", printed)
    assert f"{2 * TONE_S:.2f} s of speech" in printed


def test_the_last_request_is_found_without_its_id(
    http: httpx.Client, server: Served, capsys: pytest.CaptureFixture[str]
) -> None:
    request_id = http.post("/v1/chat/completions", json=SPOKEN).headers["x-request-id"]
    ended(http, request_id)
    # Requests without stages are passed over.
    assert http.get("/v1/models").status_code == 200
    assert http.get("/v1/requests/last").json()["id"] == request_id
    assert main(["timeline", "--last", "--base-url", server.url]) == 0
    assert capsys.readouterr().out.startswith(request_id)


def test_a_request_under_way_has_a_timeline(http: httpx.Client, backend: FakeBackend) -> None:
    backend.script = hanging(TextDelta("a"))
    with http.stream("POST", "/v1/chat/completions", json={**CHAT, "stream": True}) as reply:
        pieces = reply.iter_raw()
        next(pieces)
        found = http.get(f"/v1/requests/{reply.headers['x-request-id']}").json()
        assert not found["ended"]
        assert found["status"] == 200


def test_an_unknown_request_is_not_found(
    http: httpx.Client, server: Served, capsys: pytest.CaptureFixture[str]
) -> None:
    reply = http.get("/v1/requests/never")
    assert (reply.status_code, reply.json()["error"]["code"]) == (404, "request_not_found")
    assert main(["timeline", "never", "--base-url", server.url]) == 1
    assert "no running or recent request 'never'" in capsys.readouterr().err


def test_a_failed_request_says_so(http: httpx.Client, backend: FakeBackend) -> None:
    backend.script = playing(then=EngineFailed("died"))
    reply = http.post("/v1/audio/speech", json={"model": "org/ming", "input": "hello"})
    assert ended(http, reply.headers["x-request-id"])["status"] == 500


@pytest.fixture(scope="module")
def locked() -> Iterator[Served]:
    with serving(Access(keys(KEY, OTHER), keys(ADMIN))) as served:
        yield served


def test_only_its_own_key_and_an_administrators_find_a_request(locked: Served) -> None:
    with httpx.Client(base_url=locked.url) as http:
        asked = http.post("/v1/chat/completions", json=CHAT, headers=bearer(KEY))
        path = f"/v1/requests/{asked.headers['x-request-id']}"
        statuses = {
            key: http.get(path, headers=bearer(key)).status_code for key in (KEY, OTHER, ADMIN)
        }
        assert statuses == {KEY: 200, OTHER: 404, ADMIN: 200}
        last = {key: http.get("/v1/requests/last", headers=bearer(key)) for key in (KEY, OTHER)}
        assert last[KEY].json()["id"] == asked.headers["x-request-id"]
        assert last[OTHER].status_code == 404
        assert samples(http, **bearer(KEY))


async def one_answer(server: Served, key: str = "none") -> str:
    """The id of a spoken answer of a realtime session, which stays open until it has ended."""
    content = [{"type": "input_text", "text": "hello you"}]
    item: Any = {"type": "message", "role": "user", "content": content}
    address = f"{server.url.replace('http', 'ws')}/v1"
    async with (
        openai.AsyncOpenAI(websocket_base_url=address, api_key=key) as client,
        client.realtime.connect(model="org/ming") as connection,
    ):
        await connection.conversation.item.create(item=item)
        await connection.response.create()
        async for event in connection:
            if event.type == "response.done":
                return str(event.response.id)
    raise AssertionError("closed before the answer was done")


async def test_an_answer_in_a_session_has_a_timeline_of_its_own(
    http: httpx.Client, server: Served, backend: FakeBackend
) -> None:
    answers = [ended(http, await one_answer(server)) for _ in range(2)]
    for found in answers:
        assert (found["route"], found["status"]) == ("WS /v1/realtime response", 200)
        assert found["sound"]["audio_s"] == pytest.approx(2 * TONE_S)
        assert 0 <= found["first_text_s"] <= found["sound"]["first_s"] <= found["seconds"]
    backend.script = playing(AudioDelta(tone()), then=EngineFailed("died"))
    assert ended(http, await one_answer(server))["status"] == 500


async def test_an_answer_in_a_session_is_found_by_the_key_of_the_session(locked: Served) -> None:
    path = f"/v1/requests/{await one_answer(locked, KEY)}"
    with httpx.Client(base_url=locked.url) as http:
        statuses = [http.get(path, headers=bearer(key)).status_code for key in (KEY, OTHER)]
    assert statuses == [200, 404]
