"""`/v1/audio/transcriptions`, in OpenAI's form."""

import io
import json
from typing import Any

import httpx
import openai
import pytest
from openai.types.audio import TranscriptionTextDoneEvent

from sglang_omni.pipeline.request import Finished, MediaPart, TextDelta, TextPart, Usage
from tests.entrypoints.http.fake import EVERYTHING, FakeBackend, playing
from tests.testing.family import CAPABILITIES

FILE = ("clip.wav", io.BytesIO(b"RIFF").getvalue(), "audio/wav")
SAID = (TextDelta(" The mill"), TextDelta(" turns. "), Finished("stop", Usage(9, 0, 4, 0, 6)))


@pytest.fixture(autouse=True)
def heard(backend: FakeBackend) -> None:
    backend.script = playing(*SAID)
    backend.capabilities = EVERYTHING


def test_the_official_client_gets_the_text(client: openai.OpenAI, backend: FakeBackend) -> None:
    answer = client.audio.transcriptions.create(
        model="org/ming", file=FILE, language="en", prompt="Words: mill.", temperature=0.2
    )
    assert answer.text == "The mill turns."
    (asked,) = backend.requests
    said, clip = asked.messages[0].content
    assert isinstance(said, TextPart)
    assert isinstance(clip, MediaPart)
    prompt = CAPABILITIES.transcription_prompt
    assert said.text == f"{prompt} The language is en. Words: mill."
    assert clip.kind == "audio"
    assert clip.field == "file"
    assert asked.sampling.temperature == 0.2


def test_the_official_client_streams_it(client: openai.OpenAI) -> None:
    events = list(client.audio.transcriptions.create(model="org/ming", file=FILE, stream=True))
    assert [event.type for event in events] == [
        "transcript.text.delta",
        "transcript.text.delta",
        "transcript.text.done",
    ]
    last = events[-1]
    assert isinstance(last, TranscriptionTextDoneEvent)
    assert last.text == "The mill turns."


def test_tokens_are_counted_by_kind(http: httpx.Client) -> None:
    reply = http.post("/v1/audio/transcriptions", data={"model": "org/ming"}, files={"file": FILE})
    assert json.loads(reply.text)["usage"] == {
        "type": "tokens",
        "input_tokens": 9,
        "output_tokens": 4,
        "total_tokens": 13,
        "input_token_details": {"audio_tokens": 6, "text_tokens": 3},
    }


def test_plain_text_is_plain_text(http: httpx.Client) -> None:
    asked = {"model": "org/ming", "response_format": "text"}
    reply = http.post("/v1/audio/transcriptions", data=asked, files={"file": FILE})
    assert reply.text == "The mill turns.\n"
    assert reply.headers["content-type"].startswith("text/plain")


@pytest.mark.parametrize(
    ("change", "param"),
    [
        ({"response_format": "verbose_json"}, "response_format"),
        ({"response_format": "srt"}, "response_format"),
        ({"timestamp_granularities[]": "word"}, "timestamp_granularities[]"),
        ({"temperature": "warm"}, "temperature"),
        ({"model": "whisper-1"}, "model"),
    ],
)
def test_what_cannot_be_served_is_refused_by_name(
    http: httpx.Client, change: dict[str, Any], param: str
) -> None:
    asked = {"model": "org/ming", **change}
    reply = http.post("/v1/audio/transcriptions", data=asked, files={"file": FILE})
    assert reply.status_code in (400, 404)
    assert reply.json()["error"]["param"] == param


def test_without_a_file_nothing_is_heard(http: httpx.Client) -> None:
    reply = http.post("/v1/audio/transcriptions", data={"model": "org/ming"}, files={"x": FILE})
    assert reply.status_code == 400
