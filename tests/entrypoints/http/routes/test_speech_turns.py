"""`/v1/audio/speech` reads the turns of several speakers as one audio."""

from typing import Any

import httpx
import openai
import pytest

from sglang_omni.pipeline.request import Reference
from sglang_omni.protocol import speech as speech_protocol
from sglang_omni.protocol.speech import MAX_TURNS
from tests.entrypoints.http.fake import EVERYTHING, FakeBackend, serving

TURNS = [{"voice": "river", "text": "Who is there?"}, {"speaker": "prompt", "text": "A friend."}]


def post(http: httpx.Client, turns: Any, **fields: Any) -> httpx.Response:
    return http.post("/v1/audio/speech", json={"model": "org/ming", "input": turns, **fields})


def test_each_turn_has_its_voice(http: httpx.Client, backend: FakeBackend) -> None:
    assert post(http, TURNS, seed=5).status_code == 200
    (request,) = backend.requests
    assert [(turn.voice.name, turn.voice.seed, turn.text) for turn in request.turns] == [
        ("river", 5, "Who is there?"),
        ("prompt", 5, "A friend."),
    ]


def test_a_turn_overrides_what_all_share(http: httpx.Client, backend: FakeBackend) -> None:
    backend.capabilities = EVERYTHING
    turns = [
        {"text": "12"},
        {"text": "12", "voice": "nova", "language": "Chinese", "instructions": "Whisper."},
        {"input": "12", "ref_audio": "data:,RIFF", "ref_text": "b"},
    ]
    fields = {"voice": "prompt", "language": "en", "instructions": "Shout.", "cfg": 3.0}
    assert post(http, turns, **fields).status_code == 200
    first, second, third = backend.requests[0].turns
    assert [turn.voice.name for turn in (first, second)] == ["prompt", "river"]
    assert isinstance(third.voice.source, Reference)
    assert third.voice.source.recording.field == "input.2.ref_audio"
    assert [turn.reading.language for turn in (first, second, third)] == ["en", "zh", "en"]
    assert first.style == third.style != second.style
    assert {turn.style.cfg for turn in (first, second, third)} == {3.0}


def test_a_turn_may_be_ssml(http: httpx.Client, backend: FakeBackend) -> None:
    ssml = "<speak>One. <break time='1s'/>Two.</speak>"
    assert post(http, [{"text": "Zero."}, {"text": ssml}]).status_code == 200
    plain, second = backend.requests[0].turns
    assert (plain.pauses, second.text) == ((), "One. Two.")
    assert second.pauses[0].seconds == 1.0


def test_a_script_in_one_text_stays_a_text(http: httpx.Client, backend: FakeBackend) -> None:
    script = "Speaker 1: Hello.\nSpeaker 2: Hi."
    assert post(http, script).status_code == 200
    assert backend.requests[0].text == script
    assert len(backend.requests[0].turns) == 1


def test_the_official_client_sends_turns(client: openai.OpenAI, backend: FakeBackend) -> None:
    client.audio.speech.create(
        model="org/ming", voice="prompt", input="", extra_body={"input": TURNS}
    )
    assert len(backend.requests[0].turns) == 2


def test_a_style_that_is_not_supported_is_told(http: httpx.Client, backend: FakeBackend) -> None:
    capabilities = backend.capabilities
    object.__setattr__(backend, "capabilities", capabilities)
    reply = post(http, [{"text": "a b", "instructions": "Whisper."}])
    assert reply.status_code == 200
    ignored = "" if capabilities.speech_instructions else "input.instructions"
    assert reply.headers.get("x-ignored-fields", "") == ignored


INVALID: list[tuple[Any, str]] = [
    ([], "input"),
    (["Hello."], "input.0"),
    ([None], "input.0"),
    ({"text": "a"}, "input"),
    ([{"voice": "river"}], "input.0.text"),
    ([{"text": " "}], "input.0.text"),
    ([{"text": 5}], "input.0.text"),
    ([{"text": "a", "speed": 2}], "input.0.speed"),
    ([{"text": "a", "voice": "sea"}], "input.0.voice"),
    ([{"text": "a", "voice": {"river": 0.5}}], "input.0.voice"),
    ([{"text": "a"}, {"text": "b", "ref_text": "c"}], "input.1.ref_text"),
    ([{"text": "a"}, {"text": "b", "ref_audio": "data:,", "voice": "river"}], "input.1.ref_audio"),
    ([{"text": "a"}, {"text": "<speak>b"}], "input.1.text"),
    ([{"text": "a", "references": [1]}], "input.0.references"),
    ([{"text": "a"}] * (MAX_TURNS + 1), "input"),
]


@pytest.mark.parametrize(("turns", "param"), INVALID, ids=range(len(INVALID)))
def test_an_invalid_turn_is_named(
    http: httpx.Client, backend: FakeBackend, turns: Any, param: str
) -> None:
    reply = post(http, turns)
    assert (reply.status_code, reply.json()["error"]["param"]) == (400, param)
    assert not backend.requests
    item = {"model": "org/ming", "items": [{"input": turns}, {"input": "good"}]}
    refused, good = http.post("/v1/audio/speech/batch", json=item).json()["results"]
    assert refused["error"]["param"] == f"items.0.{param}"
    assert good["status"] == "success"


def test_a_typo_in_a_turn_names_the_nearest_field(http: httpx.Client) -> None:
    error = post(http, [{"text": "a", "voise": "river"}]).json()["error"]
    assert error["message"] == "input.0.voise: unknown field; did you mean 'voice'?"


def test_the_shared_voice_is_named_as_the_bodys(http: httpx.Client) -> None:
    assert post(http, [{"text": "a"}], voice="sea").json()["error"]["param"] == "voice"


def test_a_description_has_no_speakers(http: httpx.Client, backend: FakeBackend) -> None:
    backend.capabilities = EVERYTHING
    reply = post(http, [{"text": "rain"}], task="sound")
    assert (reply.status_code, reply.json()["error"]["param"]) == (400, "input")


def test_the_limit_is_that_of_all_texts(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(speech_protocol, "MAX_SPEECH_CHARACTERS", 10)
    with serving() as served, httpx.Client(base_url=served.url) as http:
        assert post(http, [{"text": "12345"}] * 2).status_code == 200
        reply = post(http, [{"text": "12345"}, {"text": "123456"}])
    assert reply.status_code == 400
    assert "at most 10 characters together" in reply.json()["error"]["message"]


@pytest.mark.parametrize("voice", ["river+prompt", ["river", "prompt"], {"river": 1, "prompt": 1}])
def test_voices_are_not_mixed(http: httpx.Client, voice: Any) -> None:
    reply = post(http, "Hello.", voice=voice)
    error = reply.json()["error"]
    assert (reply.status_code, error["param"]) == (400, "voice")
    assert "does not mix voices" in error["message"]
