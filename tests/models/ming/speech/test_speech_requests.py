"""What a speech request tells Ming's talker: captions, descriptions and the demo's settings."""

import json
from collections.abc import Iterator
from typing import Any

import httpx
import pytest

from sglang_omni.models.speech_text import SpeechStyle
from tests.entrypoints.http.fake import FakeBackend, Served, serving

BODY: dict[str, Any] = {"model": "org/ming", "input": "one two three"}
FILE = ("clip.wav", b"RIFF", "audio/wav")


@pytest.fixture(scope="module")
def served() -> Iterator[Served]:
    with serving() as served:
        yield served


@pytest.fixture
def backend(served: Served) -> FakeBackend:
    served.backend.reset()
    return served.backend


@pytest.fixture
def http(served: Served) -> Iterator[httpx.Client]:
    with httpx.Client(base_url=served.url, timeout=10) as client:
        yield client


def speak(http: httpx.Client, **fields: Any) -> httpx.Response:
    reply = http.post("/v1/audio/speech", json={**BODY, **fields})
    assert reply.status_code == 200, reply.text
    return reply


@pytest.mark.parametrize("asked", ["Whisper.", {"style": "Whisper."}])
def test_instructions_become_the_models_caption(
    http: httpx.Client, backend: FakeBackend, asked: Any
) -> None:
    speak(http, instructions=asked)
    (entry,) = json.loads(backend.requests[0].style.instruction)["audio_sequence"]
    assert entry["风格"] == "Whisper."
    assert entry["情感"] is None
    assert backend.requests[0].style.description is None


def test_without_instructions_there_is_no_caption(http: httpx.Client, backend: FakeBackend) -> None:
    speak(http, cfg=3.0, sigma=0.4, temperature=1.0, max_seconds=2.5)
    assert backend.requests[0].style == SpeechStyle(None, None, 3.0, 0.4, 1.0)
    assert backend.requests[0].max_seconds == 2.5


def test_a_sound_is_made_by_nobody_with_the_demos_settings(
    http: httpx.Client, backend: FakeBackend
) -> None:
    speak(http, task="sound", input="Rain on a tin roof.")
    (asked,) = backend.requests
    assert asked.verbatim
    assert asked.voice.name == ""
    assert asked.voice.source is None
    assert "audio events" in asked.style.description
    assert (asked.style.cfg, asked.style.sigma, asked.style.temperature) == (4.5, 0.3, 2.5)


def test_music_is_described_by_five_fields(http: httpx.Client, backend: FakeBackend) -> None:
    text = "Genre: Folk. Mood: Calm. Instrument: Harp. Theme: Rivers. Duration: 60s."
    speak(http, task="music", input=text)
    assert backend.requests[0].text == f" {text}"
    assert "music" in backend.requests[0].style.description
    lacking = http.post(
        "/v1/audio/speech", json={**BODY, "task": "music", "input": "Genre: Folk. Mood: Calm."}
    )
    error = lacking.json()["error"]
    assert (lacking.status_code, error["param"]) == (400, "input")
    assert error["message"].startswith("input: ")
    assert "missing: Instrument, Theme, Duration" in error["message"]
    assert len(backend.requests) == 1


def test_a_transcription_is_asked_for_in_the_words_of_the_examples(
    http: httpx.Client, backend: FakeBackend
) -> None:
    fields = {"model": "org/ming", "language": "en", "prompt": "Words: mill."}
    reply = http.post("/v1/audio/transcriptions", data=fields, files={"file": FILE})
    assert reply.status_code == 200
    said, _ = backend.requests[0].messages[0].content
    assert "transcribe" in said.text
    assert said.text.endswith("Format: oral. The language is en. Words: mill.")
