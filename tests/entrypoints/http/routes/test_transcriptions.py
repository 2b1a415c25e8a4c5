"""`/v1/audio/transcriptions`, in OpenAI's form."""

import asyncio
import io
import json
import re
from collections.abc import AsyncGenerator
from dataclasses import replace
from typing import Any

import httpx
import openai
import pytest
from openai.types.audio import TranscriptionTextDoneEvent, TranscriptionVerbose

from sglang_omni.engines.thinker.contract import TokenLogprob
from sglang_omni.pipeline.recording import RecordingPiece
from sglang_omni.pipeline.request import (
    ChatRequest,
    Event,
    Finished,
    MediaPart,
    TextDelta,
    TextPart,
    Usage,
)
from tests.entrypoints.http.fake import EVERYTHING, FakeBackend, playing
from tests.testing.family import CAPABILITIES

FILE = ("clip.wav", io.BytesIO(b"RIFF").getvalue(), "audio/wav")
GRANULARITIES, VAD = "timestamp_granularities", "chunking_strategy.threshold"
VAD_TYPO = "chunking_strategy.treshold"
PIECES = (
    RecordingPiece(0.5, 2.25, 0.9, 2.0, b"one"),
    RecordingPiece(3723.0, 3725.5, 0.8, 3.0, b"two"),
)
SAID = (TextDelta(" The mill"), TextDelta(" turns. "), Finished("stop", Usage(9, 0, 4, 0, 6)))


def say_by_piece(texts: dict[bytes, str]) -> Any:
    async def script(request: ChatRequest) -> AsyncGenerator[Event, None]:
        (content,) = request.media[0].sources
        assert isinstance(content, bytes)
        yield TextDelta(texts[content])
        yield Finished("stop", Usage(9, 0, 4, 0, 6))

    return script


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
        ({"response_format": "diarized_json"}, "response_format"),
        ({"response_format": "verbose_json", "timestamp_granularities[]": "word"}, GRANULARITIES),
        ({"response_format": "srt", "stream": "true"}, "stream"),
        ({"response_format": "text", "include[]": "logprobs"}, "include"),
        ({"chunking_strategy": "{"}, "chunking_strategy"),
        ({"chunking_strategy": '{"type": "server_vad", "treshold": 0.5}'}, VAD_TYPO),
        ({"chunking_strategy[type]": "server_vad", "chunking_strategy[threshold]": "2"}, VAD),
        ({"timestamps": "word"}, "timestamps"),
        ({"temperature": "warm"}, "temperature"),
        ({"model": "whisper-9"}, "model"),
    ],
)
def test_what_cannot_be_served_is_refused_by_name(
    http: httpx.Client, change: dict[str, Any], param: str
) -> None:
    asked = {"model": "org/ming", **change}
    reply = http.post("/v1/audio/transcriptions", data=asked, files={"file": FILE})
    assert reply.status_code in (400, 404)
    assert reply.json()["error"]["param"] == param


def verbose(client: openai.OpenAI, **fields: Any) -> TranscriptionVerbose:
    answer = client.audio.transcriptions.create(
        model="org/ming", file=FILE, response_format="verbose_json", **fields
    )
    assert isinstance(answer, TranscriptionVerbose)
    return TranscriptionVerbose.model_validate(answer.model_dump())


def test_verbose_json_has_segments_with_times(client: openai.OpenAI, backend: FakeBackend) -> None:
    backend.pieces = PIECES
    logprobs = (TokenLogprob(5, -0.25), TokenLogprob(6, -0.75))
    backend.script = playing(TextDelta("Hi.", logprobs), Finished("stop", Usage(9, 0, 4, 0, 6)))
    answer = verbose(client, language="en", timestamp_granularities=["segment"])
    assert answer.text == "Hi. Hi."
    assert (answer.language, answer.duration) == ("english", 3725.5)
    first, second = answer.segments or []
    assert (first.id, first.start, first.end, first.text) == (0, 0.5, 2.25, "Hi.")
    assert (second.id, second.start, second.end) == (1, 3723.0, 3725.5)
    assert first.avg_logprob == -0.5
    assert first.tokens == [5, 6]
    assert first.no_speech_prob == pytest.approx(0.1)
    assert first.seek == 50
    assert backend.requests[0].sampling.top_logprobs == 0
    assert [request.id.partition("-")[2] for request in backend.requests] == ["", "1"]


def test_every_piece_is_its_own_request(http: httpx.Client, backend: FakeBackend) -> None:
    backend.pieces = PIECES
    http.post("/v1/audio/transcriptions", files={"file": FILE})
    assert [request.media[0].sources for request in backend.requests] == [(b"one",), (b"two",)]
    first, second = backend.requests
    assert second.id == f"{first.id}-1"
    # Tokens for the length of the piece, so that a model that babbles ends.
    assert first.sampling.max_tokens < 100


@pytest.mark.parametrize(
    ("fields", "whole"),
    [
        ({}, True),
        ({"response_format": "text"}, True),
        ({"response_format": "srt"}, False),
        ({"response_format": "verbose_json"}, False),
        ({"chunking_strategy": "auto"}, False),
    ],
    ids=str,
)
def test_a_short_recording_is_cut_only_for_times(
    http: httpx.Client, backend: FakeBackend, fields: dict[str, str], whole: bool
) -> None:
    http.post("/v1/audio/transcriptions", data=fields, files={"file": FILE}).raise_for_status()
    assert (backend.cut_rules[-1].whole_s > 0) == whole


def test_the_official_client_tunes_the_cutting(client: openai.OpenAI, backend: FakeBackend) -> None:
    client.audio.transcriptions.create(
        model="org/ming",
        file=FILE,
        chunking_strategy={
            "type": "server_vad",
            "threshold": 0.7,
            "silence_duration_ms": 800,
            "prefix_padding_ms": 100,
        },
    )
    rules = backend.cut_rules[-1]
    assert (rules.threshold, rules.min_silence_s, rules.padding_s) == (0.7, 0.8, 0.1)


def test_subtitles(client: openai.OpenAI, backend: FakeBackend) -> None:
    backend.pieces = (*PIECES, RecordingPiece(3800.0, 3801.0, 1.0, 1.0, b"noise"))
    backend.script = say_by_piece({b"one": " a --> <b>\n & c ", b"two": "Bye.", b"noise": ""})

    def create(response_format: Any) -> str:
        return client.audio.transcriptions.create(
            model="org/ming", file=FILE, response_format=response_format
        )

    assert create("srt") == (
        "1\n00:00:00,500 --> 00:00:02,250\na -> <b> & c\n\n2\n01:02:03,000 --> 01:02:05,500\nBye.\n"
    )
    assert create("vtt") == (
        "WEBVTT\n\n00:00:00.500 --> 00:00:02.250\na -&gt; &lt;b&gt; &amp; c\n\n"
        "01:02:03.000 --> 01:02:05.500\nBye.\n"
    )


def test_segments_are_streamed_too(client: openai.OpenAI, backend: FakeBackend) -> None:
    backend.pieces = PIECES
    events = list(
        client.audio.transcriptions.create(
            model="org/ming", file=FILE, response_format="verbose_json", stream=True
        )
    )
    kinds = [event.type for event in events]
    assert kinds.count("transcript.text.segment") == 2
    assert kinds[-1] == "transcript.text.done"
    texts = [event.delta for event in events if event.type == "transcript.text.delta"]
    assert "".join(texts) == "The mill turns. The mill turns."
    assert isinstance(events[-1], TranscriptionTextDoneEvent)
    assert events[-1].text == "".join(texts)


def test_log_probabilities_are_listed(client: openai.OpenAI, backend: FakeBackend) -> None:
    backend.script = playing(
        TextDelta("Hi.", (TokenLogprob(7, -0.5),)), Finished("stop", Usage(9, 0, 4, 0, 6))
    )
    answer = client.audio.transcriptions.create(model="org/ming", file=FILE, include=["logprobs"])
    (entry,) = answer.logprobs or []
    assert (entry.logprob, entry.bytes) == (-0.5, [7])


def test_granularities_without_times_have_no_effect(http: httpx.Client) -> None:
    fields = {"timestamp_granularities[]": ["segment"], "response_format": "json"}
    reply = http.post("/v1/audio/transcriptions", data=fields, files={"file": FILE})
    assert reply.status_code == 200
    assert reply.headers["X-Ignored-Fields"] == "timestamp_granularities"


def test_a_list_without_text_is_empty(http: httpx.Client) -> None:
    fields = {"timestamp_granularities": "", "include[]": "", "languages": ""}
    reply = http.post("/v1/audio/transcriptions", data=fields, files={"file": FILE})
    assert reply.status_code == 200, reply.text
    assert "X-Ignored-Fields" not in reply.headers


@pytest.mark.parametrize("stream", ["false", "true"])
def test_a_timeout_is_for_all_pieces_together(
    http: httpx.Client, backend: FakeBackend, stream: str
) -> None:
    async def answer(request: ChatRequest) -> AsyncGenerator[Event, None]:
        await asyncio.sleep(0.2)
        yield TextDelta("Hi.")
        yield Finished("stop", Usage(9, 0, 4, 0, 6))

    backend.script = answer
    backend.pieces = tuple(
        RecordingPiece(float(at), at + 0.5, 0.9, 0.5, b"RIFF") for at in range(40)
    )
    fields = {"timeout": "0.5", "stream": stream}
    reply = http.post("/v1/audio/transcriptions", data=fields, files={"file": FILE})
    # The message says what of the timeout was left when the form had been read.
    assert re.search(r"the request took longer than 0\.[345]\d* s", reply.text)
    assert "deadline_exceeded" in reply.text
    assert reply.status_code == (504 if stream == "false" else 200)
    assert len(backend.requests) < 40


@pytest.mark.parametrize("response_format", ["json", "text", "srt", "verbose_json", "vtt"])
def test_translations_are_asked_of_the_model(
    client: openai.OpenAI, backend: FakeBackend, response_format: Any
) -> None:
    answer = client.audio.translations.create(
        model="whisper-1", file=FILE, response_format=response_format
    )
    assert "The mill turns." in (answer if isinstance(answer, str) else answer.text)
    said, _ = backend.requests[-1].messages[0].content
    assert isinstance(said, TextPart)
    assert said.text == EVERYTHING.translation_prompt


def test_a_model_that_hears_only_english_need_not_translate(
    client: openai.OpenAI, backend: FakeBackend
) -> None:
    backend.capabilities = replace(
        EVERYTHING, translation_prompt=None, transcription_languages=("en",)
    )
    client.audio.translations.create(model="org/ming", file=FILE)
    said, _ = backend.requests[-1].messages[0].content
    assert isinstance(said, TextPart)
    assert said.text == EVERYTHING.transcription_prompt


def test_a_model_that_does_not_translate_says_so(
    client: openai.OpenAI, backend: FakeBackend
) -> None:
    backend.capabilities = replace(EVERYTHING, translation_prompt=None)
    with pytest.raises(openai.BadRequestError, match="does not translate"):
        client.audio.translations.create(model="org/ming", file=FILE)


def test_without_a_file_nothing_is_heard(http: httpx.Client) -> None:
    reply = http.post("/v1/audio/transcriptions", data={"model": "org/ming"}, files={"x": FILE})
    assert reply.status_code == 400
