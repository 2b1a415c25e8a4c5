"""Fields of OpenAI, the peers and gateways are honoured, or ignored and told in a header."""

from collections.abc import Iterator
from dataclasses import replace
from typing import Any

import httpx
import pytest

from sglang_omni.entrypoints.http.request_body.ignored_fields import (
    MAX_HEADER_CHARACTERS,
    format_ignored_fields,
)
from tests.entrypoints.http.fake import EVERYTHING, FakeBackend, serving
from tests.entrypoints.http.foreign_bodies import BODIES, CHAT, Foreign

HEADER = "x-ignored-fields"
BASES: dict[str, dict[str, Any]] = {
    "chat/completions": CHAT,
    "completions": {"prompt": "hello"},
    "tokenize": {"prompt": "hello"},
    "detokenize": {"tokens": [104]},
    "audio/speech": {"input": "hello"},
}
RECORDING = {"file": ("a.wav", b"sound")}


class StrictBackend(FakeBackend):
    """Refuses fields that would be ignored."""

    strict_fields = True


@pytest.fixture(scope="module")
def strict() -> Iterator[httpx.Client]:
    with (
        serving(backend=StrictBackend()) as served,
        httpx.Client(base_url=served.url, timeout=10) as client,
    ):
        served.backend.capabilities = EVERYTHING
        yield client


def post(http: httpx.Client, foreign: Foreign) -> httpx.Response:
    return http.post(f"/v1/{foreign.path}", json=foreign.body)


def ids(foreign: Foreign) -> str:
    return foreign.origin


@pytest.mark.parametrize("foreign", BODIES, ids=ids)
def test_a_body_of_another_program_is_answered(
    http: httpx.Client, backend: FakeBackend, foreign: Foreign
) -> None:
    backend.capabilities = EVERYTHING
    answer = post(http, foreign)
    assert answer.status_code == 200, answer.text
    assert '"error"' not in answer.text
    assert answer.headers.get(HEADER, "") == foreign.ignored


@pytest.mark.parametrize("foreign", BODIES, ids=ids)
def test_strict_fields_refuse_what_would_be_ignored(strict: httpx.Client, foreign: Foreign) -> None:
    answer = post(strict, foreign)
    if foreign.path.endswith("batch"):
        error = answer.json()["results"][1]["error"]
    elif foreign.ignored:
        assert answer.status_code == 400
        error = answer.json()["error"]
    else:
        assert answer.status_code == 200
        return
    assert error["code"] == "unsupported_parameter"
    assert error["param"] == foreign.ignored.partition(",")[0]
    assert error["message"].startswith(foreign.ignored)


def ask(http: httpx.Client, backend: FakeBackend, **fields: Any) -> Any:
    answer = http.post("/v1/chat/completions", json={**CHAT, **fields})
    assert answer.status_code == 200, answer.text
    return backend.requests[-1]


def test_mapped_fields_of_a_chat_reach_the_model(http: httpx.Client, backend: FakeBackend) -> None:
    stages = [{"temperature": 0.4, "seed": 3, "max_tokens": 9}]
    sampling = ask(http, backend, sampling_params_list=stages, seed=5).sampling
    assert (sampling.temperature, sampling.seed, sampling.max_tokens) == (0.4, 5, 9)
    assert ask(http, backend, max_new_tokens=7).sampling.max_tokens == 7
    assert ask(http, backend, guided_json={"type": "object"}).sampling.json_schema is not None
    assert ask(http, backend, thinking={"type": "enabled"}).thinking
    assert ask(http, backend, service_tier="flex").priority == "low"
    assert ask(http, backend, priority=-1).priority == "high"
    spoken = ask(http, backend, modalities=["text", "audio"], speaker="river")
    assert spoken.voice.name == "river"


def test_mapped_fields_of_speech_reach_the_talker(http: httpx.Client, backend: FakeBackend) -> None:
    fields = {"language": "zh-CN", "stage_params": {"tts": {"cfg": 3.0}}, "speaker": "river"}
    body = {"input": "hello", **fields}
    assert http.post("/v1/audio/speech", json=body).status_code == 200
    (request,) = backend.requests
    assert (request.voice.name, request.style.cfg) == ("river", 3.0)
    assert request.reading.language == "zh"


@pytest.mark.parametrize(
    ("path", "change", "message"),
    [
        (
            "chat/completions",
            {"temprature": 1},
            "temprature: unknown field; did you mean 'temperature'?",
        ),
        (
            "chat/completions",
            {"guided_jsom": {}},
            "guided_jsom: unknown field; did you mean 'guided_json'?",
        ),
        ("chat/completions", {"zzz": 1}, "zzz: unknown field"),
        (
            "chat/completions",
            {"messages": [{"role": "user", "contents": "a", "content": "b"}]},
            "messages.0.contents: unknown field; did you mean 'content'?",
        ),
        (
            "chat/completions",
            {"messages": [{"role": "user", "content": [{"type": "text", "text": "a", "txt": 1}]}]},
            "messages.0.content.0.txt: unknown field; did you mean 'text'?",
        ),
        ("audio/speech", {"voise": "a"}, "voise: unknown field; did you mean 'voice'?"),
        ("completions", {"promt": "a"}, "promt: unknown field; did you mean 'prompt'?"),
        ("tokenize", {"promt": "a"}, "promt: unknown field; did you mean 'prompt'?"),
        ("detokenize", {"token": [1]}, "token: unknown field; did you mean 'tokens'?"),
    ],
)
def test_a_typing_error_is_told_the_nearest_field(
    http: httpx.Client, path: str, change: dict[str, Any], message: str
) -> None:
    answer = http.post(f"/v1/{path}", json={**BASES[path], **change})
    assert answer.status_code == 400
    assert answer.json()["error"]["message"] == message
    assert answer.json()["error"]["code"] == "unknown_parameter"


def test_an_item_of_a_batch_is_told_the_nearest_field(http: httpx.Client) -> None:
    answer = http.post("/v1/audio/speech/batch", json={"items": [{"input": "a", "sped": 1}]})
    error = answer.json()["results"][0]["error"]
    assert error["message"] == "items.0.sped: unknown field; did you mean 'speed'?"


@pytest.mark.parametrize(
    ("path", "change", "param"),
    [
        ("chat/completions", {"guided_regex": "a+"}, "guided_regex"),
        ("chat/completions", {"functions": [{"name": "f"}]}, "functions"),
        ("chat/completions", {"image_generation": {"size": "1024x1024"}}, "image"),
        ("chat/completions", {"structured_outputs": {"choice": ["a"]}}, "structured_outputs"),
        ("chat/completions", {"guided_json": '{"a": "\\ud800"}'}, "guided_json"),
        ("chat/completions", {"thinking": {"type": "deep"}}, "thinking"),
        ("audio/speech", {"task_type": "VoiceDesign"}, "task_type"),
        ("audio/speech", {"task_type": "Base"}, "task_type"),
        ("audio/speech", {"speaker_embedding": [0.5]}, "speaker_embedding"),
        ("audio/speech", {"references": [{"audio": "a"}, {"audio": "b"}]}, "references"),
        ("audio/speech", {"language": "Japanese"}, "language"),
        ("audio/speech", {"stream": "yes"}, "stream"),
        ("completions", {"suffix": "a"}, "suffix"),
        ("completions", {"response_format": {"type": "json_object"}}, "response_format"),
        ("completions", {"guided_choice": ["a"]}, "guided_choice"),
        ("completions", {"prompt_embeds": "AAAA"}, "prompt_embeds"),
        ("tokenize", {"add_generation_prompt": False}, "add_generation_prompt"),
        ("tokenize", {"continue_final_message": True}, "continue_final_message"),
    ],
)
def test_what_cannot_be_ignored_is_refused(
    http: httpx.Client, path: str, change: dict[str, Any], param: str
) -> None:
    answer = http.post(f"/v1/{path}", json={**BASES[path], **change})
    assert (answer.status_code, answer.json()["error"]["param"]) == (400, param)


@pytest.mark.parametrize("stream", [False, True])
def test_streams_have_the_header_too(http: httpx.Client, stream: bool) -> None:
    body = {**CHAT, "stream": stream, "store": True, "user": "a"}
    answer = http.post("/v1/chat/completions", json=body)
    assert answer.headers[HEADER] == "store, user"
    sse = {"input": "a", "user": "b", "stream_format": "sse" if stream else "audio"}
    assert http.post("/v1/audio/speech", json=sse).headers[HEADER] == "user"


def test_a_large_body_is_converted_too(http: httpx.Client, backend: FakeBackend) -> None:
    backend.capabilities = EVERYTHING
    image = f"data:image/png;base64,{'QUJD' * 100_000}"
    body = {**CHAT, "images": [image], "store": True, "speker": 1}
    assert http.post("/v1/chat/completions", json=body).json()["error"]["param"] == "speker"
    del body["speker"]
    assert http.post("/v1/chat/completions", json=body).headers[HEADER] == "store"


def test_the_fields_of_a_form_are_converted(http: httpx.Client) -> None:
    fields = {
        "model": "whisper-1",
        "chunking_strategy": "auto",
        "include[]": "logprobs",
        "known_speaker_names[]": ["Ann", "Bob"],
        "timestamp_granularities[]": ["word", "segment"],
        "max_completion_tokens": "50",
    }
    for stream in ("false", "true"):
        answer = http.post(
            "/v1/audio/transcriptions", data={**fields, "stream": stream}, files=RECORDING
        )
        assert answer.status_code == 200, answer.text
        assert answer.headers[HEADER] == "known_speaker_names, timestamp_granularities"
    bad = http.post("/v1/audio/transcriptions", data={"langage": "en"}, files=RECORDING)
    assert "did you mean 'language'?" in bad.json()["error"]["message"]


@pytest.mark.parametrize(
    ("fields", "ignored"),
    [
        ({"languages[]": ["en"]}, ""),
        ({"languages": "en", "language": "en"}, ""),
        ({"languages[]": ["en"], "language": "zh"}, "languages"),
        ({"languages[]": ["en", "zh"], "keywords[]": ["Ann", "Bob"]}, "keywords, languages"),
    ],
    ids=["one", "twice", "another", "several"],
)
def test_the_languages_of_a_recording_are_read(
    http: httpx.Client, fields: dict[str, Any], ignored: str
) -> None:
    answer = http.post("/v1/audio/transcriptions", data=fields, files=RECORDING)
    assert answer.status_code == 200, answer.text
    assert answer.headers.get(HEADER, "") == ignored


def test_an_unknown_language_in_a_list_is_refused(http: httpx.Client, backend: FakeBackend) -> None:
    backend.capabilities = replace(EVERYTHING, transcription_languages=("en",))
    fields = {"languages[]": ["xx"]}
    answer = http.post("/v1/audio/transcriptions", data=fields, files=RECORDING)
    assert (answer.status_code, answer.json()["error"]["param"]) == (400, "language")


def test_strict_fields_refuse_those_of_a_form(strict: httpx.Client) -> None:
    answer = strict.post("/v1/audio/transcriptions", data={"beam_size": "5"}, files=RECORDING)
    assert (answer.status_code, answer.json()["error"]["param"]) == (400, "beam_size")


def test_the_header_is_short_and_plain(http: httpx.Client) -> None:
    long = format_ignored_fields(f"field_{number:03}" for number in range(500))
    assert len(long) <= MAX_HEADER_CHARACTERS
    assert long.endswith(", ...")
    strange = {f"é\r\n{number}": 1 for number in range(3)}
    answer = http.post("/v1/chat/completions", json={**CHAT, "chat_template_kwargs": strange})
    assert answer.headers[HEADER] == "chat_template_kwargs"
