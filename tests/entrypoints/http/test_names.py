"""Names of models and voices that requests of unmodified programs contain."""

from collections.abc import Iterator, Mapping
from types import MappingProxyType

import httpx
import pytest

from sglang_omni.protocol.compat.model_names import build_model_names
from tests.entrypoints.http.fake import FakeBackend, serving

CHAT = {"messages": [{"role": "user", "content": "hello"}]}
SPEECH = {"input": "hello"}
SOUND = {"audio_sample": ("me.wav", b"sound")}


class StrictBackend(FakeBackend):
    """Knows only the names that its operator gave."""

    model_names = build_model_names(("org/ming", "two"), {"three": "two"}, strict=True)
    openai_voices: Mapping[str, str] = MappingProxyType({})


@pytest.fixture(scope="module")
def strict() -> Iterator[httpx.Client]:
    with (
        serving(backend=StrictBackend()) as served,
        httpx.Client(base_url=served.url, timeout=10) as client,
    ):
        yield client


@pytest.mark.parametrize(
    ("model", "echoed"), [(None, "org/ming"), ("gpt-4o", "gpt-4o"), ("org/ming", "org/ming")]
)
@pytest.mark.parametrize("stream", [False, True])
def test_the_answer_has_the_name_that_the_request_used(
    http: httpx.Client, model: str | None, echoed: str, stream: bool
) -> None:
    answer = http.post("/v1/chat/completions", json={**CHAT, "model": model, "stream": stream})
    assert answer.status_code == 200
    assert f'"model":"{echoed}"' in answer.text.replace(" ", "")


@pytest.mark.parametrize("name", ["org/ming", "two", "three"])
def test_every_given_name_is_served(strict: httpx.Client, name: str) -> None:
    assert strict.post("/v1/audio/speech", json={**SPEECH, "model": name}).status_code == 200


def test_strict_names_leave_only_those(strict: httpx.Client) -> None:
    answer = strict.post("/v1/audio/speech", json={**SPEECH, "model": "tts-1"})
    assert answer.status_code == 404
    assert "this server serves 'org/ming', 'two'" in answer.json()["error"]["message"]
    assert strict.post("/v1/audio/speech", json={**SPEECH, "voice": "alloy"}).status_code == 400
    cards = strict.get("/v1/models").json()["data"]
    assert [(card["id"], card["root"], card["parent"]) for card in cards] == [
        ("org/ming", "org/ming", None),
        ("two", "org/ming", None),
        ("three", "org/ming", "two"),
    ]
    assert strict.get("/v1/audio/voices").json()["aliases"] == {"nova": "river"}


@pytest.mark.parametrize(("voice", "preset"), [("alloy", "prompt"), ("ash", "river")])
def test_a_voice_of_openai_is_spoken_by_a_preset(
    http: httpx.Client, backend: FakeBackend, voice: str, preset: str
) -> None:
    assert http.post("/v1/audio/speech", json={**SPEECH, "voice": voice}).status_code == 200
    spoken = {**CHAT, "modalities": ["text", "audio"], "audio": {"voice": voice, "format": "wav"}}
    assert http.post("/v1/chat/completions", json=spoken).status_code == 200
    assert [request.voice.name for request in backend.requests] == [preset, preset]


def test_a_stored_voice_of_that_name_comes_first(http: httpx.Client, backend: FakeBackend) -> None:
    form = {"name": "alloy", "consent": "I agree"}
    stored = http.post("/v1/audio/voices", data=form, files=SOUND)
    assert stored.status_code == 201
    assert "alloy" not in http.get("/v1/audio/voices").json()["aliases"]
    assert http.post("/v1/audio/speech", json={**SPEECH, "voice": "alloy"}).status_code == 200
    assert backend.requests[-1].voice.source is not None
