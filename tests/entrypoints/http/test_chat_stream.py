"""Streamed chat, through the official client and as server-sent events."""

import base64
import io
import json
from typing import Any

import httpx
import numpy as np
import openai
import pytest
import soundfile

from sglang_omni.pipeline.request import (
    AudioDelta,
    Finished,
    TextDelta,
    TranscriptDelta,
    Usage,
)
from tests.entrypoints.http.fake import USAGE, FakeBackend, hanging, playing, tone
from tests.testing.family import RATE

BODY: dict[str, Any] = {
    "model": "org/ming",
    "messages": [{"role": "user", "content": "hello big world"}],
    "stream": True,
}
SPOKEN = {"modalities": ["text", "audio"]}


def stream(client: openai.OpenAI, **fields: Any) -> list[Any]:
    return list(client.chat.completions.create(**BODY, **fields))


def deltas(chunks: list[Any]) -> list[dict[str, Any]]:
    return [chunk.choices[0].delta.to_dict() for chunk in chunks if chunk.choices]


def audio_fields(chunks: list[Any]) -> list[dict[str, Any]]:
    return [delta["audio"] for delta in deltas(chunks) if "audio" in delta]


def audio_data(chunks: list[Any]) -> list[bytes]:
    return [base64.b64decode(a["data"]) for a in audio_fields(chunks) if "data" in a]


def test_text_comes_in_pieces_after_the_role(client: openai.OpenAI) -> None:
    chunks = stream(client)
    assert deltas(chunks) == [
        {"role": "assistant", "content": ""},
        {"content": "hello "},
        {"content": "big "},
        {"content": "world "},
        {},
    ]
    assert [chunk.choices[0].finish_reason for chunk in chunks] == [None] * 4 + ["stop"]
    assert {chunk.object for chunk in chunks} == {"chat.completion.chunk"}
    assert len({chunk.id for chunk in chunks}) == 1


def test_every_piece_is_sent_as_soon_as_it_is_there(
    client: openai.OpenAI, backend: FakeBackend
) -> None:
    backend.script = hanging(TextDelta("a"), TextDelta("b"))
    with client.chat.completions.create(**BODY) as chunks:
        assert [next(chunks).choices[0].delta.content for _ in range(3)] == ["", "a", "b"]


def test_audio_opens_with_its_id_and_closes_with_its_expiry(client: openai.OpenAI) -> None:
    chunks = stream(client, **SPOKEN)
    fields = audio_fields(chunks)
    (audio_id,) = {audio.pop("id") for audio in fields}
    assert audio_id.startswith("audio-")
    assert fields[0] == {}
    assert fields[-1].keys() == {"expires_at"}
    assert "".join(a.get("transcript", "") for a in fields) == "hello big world "
    assert chunks[-1].choices[0].finish_reason == "stop"


def test_text_transcript_and_audio_come_in_the_order_of_the_events(client: openai.OpenAI) -> None:
    kinds = []
    for delta in deltas(stream(client, **SPOKEN))[2:-2]:
        kinds += [key for key in (*delta, *delta.get("audio", ())) if key not in ("audio", "id")]
    assert kinds == ["content", "transcript", "data"] * 3


def test_streamed_wav_pieces_joined_are_one_file(client: openai.OpenAI) -> None:
    pieces = audio_data(stream(client, **SPOKEN))
    assert [piece.startswith(b"RIFF") for piece in pieces] == [True, False, False]
    samples, rate = soundfile.read(io.BytesIO(b"".join(pieces)), dtype="float32")
    assert rate == RATE
    np.testing.assert_allclose(samples, np.tile(tone(), 3), atol=1e-4)


@pytest.mark.parametrize("rate", [24_000, RATE])
def test_streamed_pcm16_equals_the_whole_answer(client: openai.OpenAI, rate: int) -> None:
    audio = {"voice": "river", "format": "pcm16", "sample_rate": rate}
    fields: dict[str, Any] = {**SPOKEN, "audio": audio}
    streamed = b"".join(audio_data(stream(client, **fields)))
    asked: dict[str, Any] = {**BODY, **fields, "stream": False}
    whole = client.chat.completions.create(**asked)
    assert streamed == base64.b64decode(whole.choices[0].message.audio.data)
    assert len(streamed) == 2 * round(3 * len(tone()) * rate / RATE)


def test_speech_alone_streams_no_content(client: openai.OpenAI) -> None:
    chunks = stream(client, modalities=["audio"])
    assert all("content" not in delta for delta in deltas(chunks))
    assert len(audio_data(chunks)) == 3


def test_usage_is_the_last_chunk_if_asked_for(client: openai.OpenAI) -> None:
    *others, last = stream(client, stream_options={"include_usage": True}, **SPOKEN)
    assert all(chunk.usage is None and "usage" in chunk.to_dict() for chunk in others)
    assert last.choices == []
    assert last.usage.prompt_tokens == USAGE.prompt_tokens
    assert last.usage.completion_tokens_details.audio_tokens == USAGE.audio_tokens


def test_no_usage_unless_asked_for(client: openai.OpenAI) -> None:
    assert all("usage" not in chunk.to_dict() for chunk in stream(client))


def test_the_first_chunk_says_what_the_seed_fixes(client: openai.OpenAI) -> None:
    first, *others = stream(client, seed=1, temperature=0.5, **SPOKEN)
    assert first.seed_applies_to == ["audio"]
    assert all(not hasattr(chunk, "seed_applies_to") for chunk in others)


def test_empty_deltas_are_not_sent(client: openai.OpenAI, backend: FakeBackend) -> None:
    silence = AudioDelta(np.zeros(0, np.float32))
    empty = (TextDelta(""), TranscriptDelta(""), silence)
    backend.script = playing(*empty, TextDelta("a"), Finished("stop", Usage()))
    pieces = deltas(stream(client, **SPOKEN))
    assert pieces[0] == {"role": "assistant", "content": ""}
    assert pieces[2] == {"content": "a"}
    assert [d["audio"].keys() - {"id"} for d in pieces if "audio" in d] == [
        set(),
        {"data"},  # a WAV header must come, samples or not
        {"expires_at"},
    ]


def test_the_wire_format_is_one_json_object_per_event_and_then_done(http: httpx.Client) -> None:
    # U+2028 and U+0085 would end a line for a reader that splits as str.splitlines does.
    messages = [{"role": "user", "content": "你\u2028好\u0085é"}]
    reply = http.post("/v1/chat/completions", json={**BODY, "messages": messages})
    assert reply.headers["content-type"].startswith("text/event-stream")
    assert reply.headers["cache-control"] == "no-cache"
    *events, done, rest = reply.text.split("\n\n")
    assert (done, rest) == ("data: [DONE]", "")
    objects = [json.loads(event.removeprefix("data: ")) for event in events]
    assert objects[1]["choices"][0]["delta"]["content"] == "你\u2028好\u0085é "
    assert reply.content.isascii()


def test_a_spoken_stream_names_its_rate_in_the_headers(http: httpx.Client) -> None:
    body = {**BODY, **SPOKEN, "audio": {"format": "pcm16"}}
    headers = http.post("/v1/chat/completions", json=body).headers
    assert (headers["x-sample-rate"], headers["x-channels"]) == ("24000", "1")


async def test_the_asynchronous_client_gets_the_same_stream(client: openai.OpenAI) -> None:
    async with openai.AsyncOpenAI(base_url=client.base_url, api_key="none") as other:
        asked: dict[str, Any] = {**BODY, **SPOKEN}
        chunks = [chunk async for chunk in await other.chat.completions.create(**asked)]
    assert len(audio_data(chunks)) == 3
    assert "".join(d.get("content", "") for d in deltas(chunks)) == "hello big world "
