"""`/v1/audio/speech/batch`: many texts, a status for each."""

import base64
import io
from typing import Any

import httpx
import pytest
import soundfile

from sglang_omni.errors import EngineFailed
from sglang_omni.pipeline.request import Reference, SpeechRequest
from tests.api.fake import FakeBackend, echo, tone

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
        assert result["media_type"] == "audio/wav" and result["usage"]["output_tokens"] == 4
        info = soundfile.info(io.BytesIO(base64.b64decode(result["audio"])))
        assert info.frames == (index + 1) * len(tone())


def test_one_that_fails_does_not_fail_the_others(http: httpx.Client, backend: FakeBackend) -> None:
    async def sometimes(request: SpeechRequest) -> Any:
        if request.text == "bad":
            raise EngineFailed("the talker died")
        async for event in echo(request):
            yield event

    backend.script = sometimes
    items = [{"input": "good"}, {"input": "bad"}, {"input": "x", "voice": "alloy"}]
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
    assert {request.manner.cfg for request in asked.values()} == {3.0}
    assert len({request.id for request in asked.values()}) == 3


@pytest.mark.parametrize(
    ("body", "param"),
    [
        ({"items": []}, "items"),
        ({"items": [{"input": "a"}] * 33}, "items"),
        ({"items": [{"input": " "}]}, "items.0.input"),
        ({"items": [{"text": "a"}]}, "items.0.input"),
        ({"items": [{"input": "a", "speed": 9}]}, "items.0.speed"),
        ({"items": [{"input": "a"}], "stream": True}, "stream"),
    ],
)
def test_a_bad_batch_names_its_field(http: httpx.Client, body: Any, param: str) -> None:
    refused = http.post("/v1/audio/speech/batch", json={**MODEL, **body})
    assert refused.status_code == 400
    assert refused.json()["error"]["param"] == param
