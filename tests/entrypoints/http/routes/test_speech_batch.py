"""`/v1/audio/speech/batch`: many texts, a status for each."""

import base64
import io
from typing import Any

import httpx
import pytest
import soundfile

from sglang_omni.pipeline.request import Reference, SpeechRequest
from sglang_omni.protocol.errors import EngineFailed
from sglang_omni.protocol.speech import MAX_SPEECH_CHARACTERS
from tests.entrypoints.http.fake import FakeBackend, echo, serving, tone

MODEL = {"model": "org/ming"}


def batch(http: httpx.Client, *items: Any, **shared: Any) -> dict[str, Any]:
    reply = http.post("/v1/audio/speech/batch", json={**MODEL, **shared, "items": list(items)})
    assert reply.status_code == 200, reply.text
    answer: dict[str, Any] = reply.json()
    return answer


def test_each_item_has_a_file_of_its_own_in_order(http: httpx.Client) -> None:
    texts = ["one", "one two", "one two three"]
    answer = batch(http, *({"input": text} for text in texts))
    assert (answer["total"], answer["succeeded"], answer["failed"]) == (3, 3, 0)
    for index, result in enumerate(answer["results"]):
        assert (result["index"], result["status"]) == (index, "success")
        assert result["media_type"] == "audio/wav"
        assert result["usage"]["output_tokens"] == 4
        info = soundfile.info(io.BytesIO(base64.b64decode(result["audio"])))
        assert info.frames == (index + 1) * len(tone())


def test_one_that_fails_does_not_fail_the_others(http: httpx.Client, backend: FakeBackend) -> None:
    async def sometimes(request: SpeechRequest) -> Any:
        if request.text == "bad":
            raise EngineFailed("the talker died")
        async for event in echo(request):
            yield event

    backend.script = sometimes
    items = [{"input": "good"}, {"input": "bad"}, {"input": "x", "voice": "sea"}]
    answer = batch(http, *items)
    assert [result["status"] for result in answer["results"]] == ["success", "error", "error"]
    assert answer["results"][1]["error"]["code"] == "engine_failed"
    assert answer["results"][2]["error"]["param"] == "items.2.voice"
    assert (answer["succeeded"], answer["failed"]) == (1, 2)


def test_an_items_own_options_win_and_speakers_are_not_mixed(
    http: httpx.Client, backend: FakeBackend
) -> None:
    items: list[dict[str, Any]] = [
        {"input": "a"},
        {"input": "b", "voice": "prompt", "seed": 9},
        {"input": "c", "ref_audio": "data:,RIFF"},
    ]
    batch(http, *items, voice="river", seed=5, cfg=3.0)
    asked = {request.text: request for request in backend.requests}
    assert (asked["a"].voice.name, asked["a"].voice.seed) == ("river", 5)
    assert (asked["b"].voice.name, asked["b"].voice.seed) == ("prompt", 9)
    assert isinstance(asked["c"].voice.source, Reference)
    assert {request.style.cfg for request in asked.values()} == {3.0}
    assert len({request.id for request in asked.values()}) == 3


INVALID: list[tuple[Any, str]] = [
    ({"input": " "}, "input"),
    ({"input": ""}, "input"),
    ({"input": None}, "input"),
    ({"input": 5}, "input"),
    ({"text": "a"}, "input"),
    ({"input": "a", "text": "b"}, "text"),
    ({"input": "a", "speed": 9}, "speed"),
    ({"input": "a", "seed": "1"}, "seed"),
    ({"input": "a", "voice": "sea"}, "voice"),
    ({"input": "a", "ref_text": "b"}, "ref_text"),
    ({"input": "a", "instructions": "b" * 501}, "instructions.style"),
    ({"input": "a", "instructions": {"mood": "glad"}}, "instructions.mood"),
    ({"input": "a", "response_format": "opus", "sample_rate": 44_100}, "sample_rate"),
]


@pytest.mark.parametrize(("item", "field"), INVALID)
def test_an_invalid_item_is_refused_alone_in_the_words_of_the_single_route(
    http: httpx.Client, backend: FakeBackend, item: dict[str, Any], field: str
) -> None:
    answer = batch(http, {"input": "good"}, item, {"input": "better"})
    assert [result["status"] for result in answer["results"]] == ["success", "error", "success"]
    assert (answer["total"], answer["succeeded"], answer["failed"]) == (3, 2, 1)
    assert len(backend.requests) == 2
    error = answer["results"][1]["error"]
    assert error["param"] == f"items.1.{field}"
    alone = http.post("/v1/audio/speech", json={**MODEL, **item})
    assert alone.status_code == 400
    expected = alone.json()["error"]
    assert error["message"] == f"items.1.{expected['message']}"
    assert (error["type"], error["code"]) == (expected["type"], expected["code"])


@pytest.mark.parametrize("item", [None, "a", 5, ["a"]])
def test_an_item_that_is_no_object_is_refused_alone(http: httpx.Client, item: Any) -> None:
    answer = batch(http, item, {"input": "good"})
    refused, good = answer["results"]
    assert (refused["status"], good["status"]) == ("error", "success")
    assert refused["error"]["message"] == "items.0: must be a JSON object"
    assert refused["error"]["param"] == "items.0"


def test_an_item_that_is_too_long_is_refused_alone(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(FakeBackend, "max_body_bytes", 2 * MAX_SPEECH_CHARACTERS)
    long = "a" * (MAX_SPEECH_CHARACTERS + 1)
    with serving() as served, httpx.Client(base_url=served.url) as http:
        answer = batch(http, {"input": long}, {"input": "good"})
    assert [result["status"] for result in answer["results"]] == ["error", "success"]
    assert answer["results"][0]["error"]["param"] == "items.0.input"


def test_a_batch_of_nothing_but_invalid_items_is_still_answered(http: httpx.Client) -> None:
    answer = batch(http, {"input": " "}, {})
    assert (answer["succeeded"], answer["failed"]) == (0, 2)


def test_an_item_may_have_a_priority_and_a_time_of_its_own(
    http: httpx.Client, backend: FakeBackend
) -> None:
    batch(http, {"input": "a"}, {"input": "b", "priority": "high", "timeout": 2.0}, timeout=9.0)
    asked = {request.text: request for request in backend.requests}
    assert (asked["a"].priority, asked["b"].priority) == ("normal", "high")
    # Less what has gone by since the request's first byte.
    assert asked["a"].timeout_s == pytest.approx(9.0, abs=1.0)
    assert asked["b"].timeout_s == pytest.approx(2.0, abs=1.0)


@pytest.mark.parametrize(
    ("body", "param"),
    [
        ({"items": []}, "items"),
        ({"items": [{"input": "a"}] * 33}, "items"),
        ({"items": None}, "items"),
        ({"items": {"input": "a"}}, "items"),
        ({"items": [{"input": "a"}], "stream": True}, "stream"),
        ({"items": [{"input": " "}], "speed": 9}, "speed"),
        ({"items": [{"input": "a"}], "model": 3}, "model"),
    ],
)
def test_what_is_wrong_beside_the_items_refuses_the_batch(
    http: httpx.Client, body: Any, param: str
) -> None:
    refused = http.post("/v1/audio/speech/batch", json={**MODEL, **body})
    assert refused.status_code == 400
    assert refused.json()["error"]["param"] == param
