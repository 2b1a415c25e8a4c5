"""Errors of the backend: an HTTP status before the first byte, an error event after it."""

import json
from typing import Any, get_args

import httpx
import numpy as np
import openai
import pytest

from sglang_omni.pipeline.request import AudioDelta, Event, Finished, TextDelta, Usage
from sglang_omni.protocol.audio import AudioFormat
from sglang_omni.protocol.errors import (
    EngineFailed,
    EngineUnavailable,
    InvalidRequest,
    OmniError,
    Overloaded,
)
from tests.entrypoints.http.fake import FakeBackend, playing, tone

CHAT: dict[str, Any] = {"model": "org/ming", "messages": [{"role": "user", "content": "hello"}]}
SPEECH = {"model": "org/ming", "input": "hello"}
SPOKEN = {"modalities": ["text", "audio"]}
REQUESTS = [
    pytest.param("/v1/chat/completions", CHAT, id="chat"),
    pytest.param("/v1/chat/completions", {**CHAT, "stream": True}, id="chat-stream"),
    pytest.param("/v1/audio/speech", SPEECH, id="speech"),
    pytest.param("/v1/audio/speech", {**SPEECH, "response_format": "pcm"}, id="speech-raw"),
    pytest.param("/v1/audio/speech", {**SPEECH, "stream_format": "sse"}, id="speech-sse"),
]
FORMATS: tuple[AudioFormat, ...] = get_args(AudioFormat)
NOT_FINITE = AudioDelta(np.array([np.nan], np.float32))


def last_event(reply: httpx.Response) -> dict[str, Any]:
    return json.loads(reply.text.removesuffix("\n\n").split("\n\n")[-1].removeprefix("data: "))


@pytest.mark.parametrize(("path", "body"), REQUESTS)
@pytest.mark.parametrize(
    "error",
    [
        InvalidRequest("too long", param="messages"),
        Overloaded("busy"),
        EngineFailed("the talker died"),
        EngineUnavailable("the talker restarts"),
    ],
    ids=lambda error: str(error.status),
)
def test_an_error_before_the_first_byte_is_a_status(
    http: httpx.Client, backend: FakeBackend, path: str, body: dict[str, Any], error: OmniError
) -> None:
    backend.script = playing(then=error)
    reply = http.post(path, json=body)
    assert reply.status_code == error.status
    assert reply.json()["error"] == {
        "message": error.message,
        "type": error.type,
        "param": error.param,
        "code": error.code,
    }


@pytest.mark.parametrize(("path", "body"), REQUESTS)
def test_a_refusal_says_when_to_come_again(
    http: httpx.Client, backend: FakeBackend, path: str, body: dict[str, Any]
) -> None:
    backend.script = playing(then=Overloaded("600 listeners of 600", retry_after_s=2.2))
    reply = http.post(path, json=body)
    assert (reply.status_code, reply.headers["retry-after"]) == (429, "3")
    backend.script = playing(then=EngineFailed("died"))
    assert "retry-after" not in http.post(path, json=body).headers


@pytest.mark.parametrize(("path", "body"), REQUESTS)
def test_an_unforeseen_error_is_a_500_that_tells_nothing(
    http: httpx.Client, backend: FakeBackend, path: str, body: dict[str, Any]
) -> None:
    backend.script = playing(then=KeyError("secret"))
    reply = http.post(path, json=body)
    assert reply.status_code == 500
    assert reply.headers["x-request-id"]
    assert reply.json()["error"]["code"] == "internal_error"
    assert "secret" not in reply.text


def test_a_complete_answer_that_fails_late_is_a_status(
    http: httpx.Client, backend: FakeBackend
) -> None:
    backend.script = playing(TextDelta("a"), AudioDelta(tone()), then=EngineFailed("died"))
    assert http.post("/v1/chat/completions", json=CHAT).status_code == 500


@pytest.mark.parametrize(
    ("error", "code"), [(EngineFailed("died"), "engine_failed"), (KeyError(), "internal_error")]
)
def test_a_chat_stream_that_fails_ends_with_an_error_event(
    http: httpx.Client, backend: FakeBackend, error: Exception, code: str
) -> None:
    backend.script = playing(TextDelta("a"), AudioDelta(tone()), then=error)
    reply = http.post("/v1/chat/completions", json={**CHAT, **SPOKEN, "stream": True})
    assert reply.status_code == 200
    assert last_event(reply)["error"]["code"] == code
    assert "[DONE]" not in reply.text


def test_the_official_client_raises_the_error_of_a_stream(
    client: openai.OpenAI, backend: FakeBackend
) -> None:
    backend.script = playing(TextDelta("a"), then=EngineFailed("the thinker died"))
    chunks = client.chat.completions.create(**CHAT, stream=True)
    assert next(chunks).choices[0].delta.role == "assistant"
    assert next(chunks).choices[0].delta.content == "a"
    with pytest.raises(openai.APIError, match="the thinker died"):
        next(chunks)


def test_a_speech_stream_of_events_that_fails_ends_with_an_error_event(
    http: httpx.Client, backend: FakeBackend
) -> None:
    backend.script = playing(AudioDelta(tone()), then=EngineFailed("died"))
    reply = http.post("/v1/audio/speech", json={**SPEECH, "stream_format": "sse"})
    assert last_event(reply)["error"]["code"] == "engine_failed"
    assert "speech.audio.done" not in reply.text


@pytest.mark.parametrize("audio_format", FORMATS)
@pytest.mark.parametrize(
    "error", [EngineFailed("died"), KeyError()], ids=["foreseen", "unforeseen"]
)
def test_audio_that_fails_is_visibly_cut_off(
    http: httpx.Client, backend: FakeBackend, error: Exception, audio_format: str
) -> None:
    """In the middle of its first samples, or with the headers of its file at the latest."""
    backend.script = playing(*[AudioDelta(tone())] * 6, then=error)
    with pytest.raises(httpx.RemoteProtocolError, match="incomplete"):
        http.post("/v1/audio/speech", json={**SPEECH, "response_format": audio_format})


def test_audio_that_ends_without_its_end_is_cut_off(
    http: httpx.Client, backend: FakeBackend
) -> None:
    backend.script = playing(AudioDelta(tone()), Finished("abort", Usage()))
    with pytest.raises(httpx.RemoteProtocolError, match="incomplete"):
        http.post("/v1/audio/speech", json=SPEECH)


@pytest.mark.parametrize(
    "events",
    [(TextDelta("a"),), (TextDelta("a"), Finished("abort", Usage()))],
    ids=["no-end", "aborted"],
)
def test_an_answer_cut_short_is_never_taken_for_a_whole_one(
    http: httpx.Client, backend: FakeBackend, events: tuple[Event, ...]
) -> None:
    backend.script = playing(*events)
    assert http.post("/v1/chat/completions", json=CHAT).status_code == 500
    streamed = http.post("/v1/chat/completions", json={**CHAT, "stream": True})
    assert last_event(streamed)["error"]["code"] == "engine_failed"


def test_samples_that_are_not_finite_are_an_error(http: httpx.Client, backend: FakeBackend) -> None:
    backend.script = playing(NOT_FINITE, Finished("stop", Usage()))
    assert http.post("/v1/audio/speech", json=SPEECH).status_code == 500
    backend.script = playing(AudioDelta(tone()), NOT_FINITE, Finished("stop", Usage()))
    with pytest.raises(httpx.RemoteProtocolError, match="incomplete"):
        http.post("/v1/audio/speech", json=SPEECH)
    body = {**CHAT, **SPOKEN, "stream": True}
    assert last_event(http.post("/v1/chat/completions", json=body))["error"]
    backend.wait_running(0)


@pytest.mark.parametrize(("path", "body"), REQUESTS)
def test_the_server_answers_after_a_failure(
    http: httpx.Client, backend: FakeBackend, path: str, body: dict[str, Any]
) -> None:
    backend.script = playing(then=EngineFailed("died"))
    assert http.post(path, json=body).status_code == 500
    backend.reset()
    assert http.post(path, json=body).status_code == 200
    backend.wait_running(0)
