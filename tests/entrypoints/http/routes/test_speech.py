"""`/v1/audio/speech`: streamed in every format, raw and as events."""

import base64
import io
import json
import wave
from dataclasses import replace
from pathlib import Path
from typing import Any, get_args

import av
import httpx
import numpy as np
import openai
import pytest
import soundfile

from sglang_omni.media.encode import get_media_type
from sglang_omni.models.capabilities import SpeechTask
from sglang_omni.models.plain import PlainSpeechText
from sglang_omni.pipeline.request import AudioDelta, Finished, Usage, Voice
from sglang_omni.protocol.audio import AudioFormat
from sglang_omni.protocol.errors import EngineFailed, InvalidRequest
from sglang_omni.protocol.speech import Instructions
from tests.entrypoints.http.fake import EVERYTHING, USAGE, FakeBackend, hanging, playing, tone
from tests.testing.family import CAPABILITIES, RATE, SPEECH_TEXT

BODY: dict[str, Any] = {"model": "org/ming", "input": "one two three"}
SAMPLES = 3 * len(tone())
FORMATS: tuple[AudioFormat, ...] = get_args(AudioFormat)


def speak(http: httpx.Client, **fields: Any) -> httpx.Response:
    reply = http.post("/v1/audio/speech", json={**BODY, **fields})
    assert reply.status_code == 200, reply.text
    return reply


def events(reply: httpx.Response) -> list[dict[str, Any]]:
    lines = reply.text.removesuffix("\n\n").split("\n\n")
    return [json.loads(line.removeprefix("data: ")) for line in lines]


def test_the_official_client_gets_a_wav(client: openai.OpenAI, backend: FakeBackend) -> None:
    reply = client.audio.speech.create(model="org/ming", voice="river", input="one two three")
    info = soundfile.info(io.BytesIO(reply.content))
    assert (info.samplerate, info.channels, info.frames) == (RATE, 1, SAMPLES)
    assert info.subtype == "PCM_16"
    assert backend.requests[0].text == "one two three"
    assert backend.requests[0].voice.name == "river"


@pytest.mark.parametrize("streamed", [True, False])
@pytest.mark.parametrize("rate", [24_000, RATE])
def test_a_loud_voice_is_not_clipped(
    http: httpx.Client, backend: FakeBackend, rate: int, streamed: bool
) -> None:
    backend.script = playing(*[AudioDelta(6 * tone())] * 3, Finished("stop", Usage()))
    how = {"stream_format": "audio"} if streamed else {}
    reply = speak(http, response_format="wav", sample_rate=rate, **how)
    samples, _ = soundfile.read(io.BytesIO(reply.content), dtype="float32")
    assert 0.8 < np.abs(samples).max() < 0.9


@pytest.mark.parametrize("audio_format", ["mp3", "opus", "aac", "flac"])
def test_the_official_client_gets_every_format(client: openai.OpenAI, audio_format: Any) -> None:
    reply = client.audio.speech.create(
        model="org/ming", voice="river", input="one two three", response_format=audio_format
    )
    with av.open(io.BytesIO(reply.content), "r") as container:
        samples = sum(frame.samples for frame in container.decode(audio=0))
        rate = container.streams.audio[0].rate
    assert abs(samples / rate - SAMPLES / RATE) < 0.1


@pytest.mark.parametrize("audio_format", FORMATS)
def test_every_format_is_streamed_without_asking(
    http: httpx.Client, backend: FakeBackend, audio_format: str
) -> None:
    backend.script = hanging(*[AudioDelta(tone())] * 6)
    asked = {**BODY, "response_format": audio_format}
    with http.stream("POST", "/v1/audio/speech", json=asked) as reply:
        assert reply.headers["transfer-encoding"] == "chunked"
        pieces = reply.iter_raw()  # dropping it would close the connection
        assert next(pieces)
        assert backend.running == 1
    backend.wait_running(0)


def test_speed_changes_the_length(http: httpx.Client) -> None:
    for speed in (0.5, 2.0):
        data = speak(http, speed=speed).content
        assert abs(soundfile.info(io.BytesIO(data)).frames * speed / SAMPLES - 1) < 0.1


@pytest.mark.skipif(
    not CAPABILITIES.speech_instructions, reason=f"{CAPABILITIES.name} follows no instructions"
)
@pytest.mark.parametrize("asked", ["Whisper.", {"style": "Whisper."}])
def test_instructions_become_the_models_style(
    http: httpx.Client, backend: FakeBackend, asked: Any
) -> None:
    speak(http, instructions=asked)
    instructions = Instructions(style="Whisper.").model_dump()
    style = backend.requests[0].style
    assert style == SPEECH_TEXT.style("speech", instructions) != SPEECH_TEXT.style("speech")


def test_without_instructions_the_style_is_the_models_own(
    http: httpx.Client, backend: FakeBackend
) -> None:
    speak(http, cfg=3.0, sigma=0.4, temperature=1.0, max_seconds=2.5)
    style = replace(SPEECH_TEXT.style("speech"), cfg=3.0, sigma=0.4, temperature=1.0)
    assert backend.requests[0].style == style
    assert backend.requests[0].max_seconds == 2.5


@pytest.mark.parametrize("task", [one for one in CAPABILITIES.speech_tasks if one != "speech"])
def test_a_description_is_spoken_by_nobody_in_the_style_of_its_task(
    http: httpx.Client, backend: FakeBackend, task: SpeechTask
) -> None:
    text = "Genre: Folk. Mood: Calm. Instrument: Harp. Theme: Rivers. Duration: 60s."
    speak(http, task=task, input=text)
    (asked,) = backend.requests
    assert asked.verbatim
    assert asked.voice.name == ""
    assert asked.voice.source is None
    assert asked.text == SPEECH_TEXT.description(task, text)
    assert asked.style == SPEECH_TEXT.style(task)


def test_what_a_description_lacks_is_told(
    http: httpx.Client, backend: FakeBackend, monkeypatch: pytest.MonkeyPatch
) -> None:
    class Demanding(PlainSpeechText):
        def description(self, task: SpeechTask, text: str) -> str:
            raise InvalidRequest("input: name a key", param="input")

    monkeypatch.setattr(backend, "speech_text", Demanding())
    backend.capabilities = replace(CAPABILITIES, speech_tasks=("speech", "music"))
    reply = http.post("/v1/audio/speech", json={**BODY, "task": "music"})
    error = reply.json()["error"]
    assert (reply.status_code, error["param"]) == (400, "input")
    assert error["message"] == "input: name a key"
    assert backend.requests == []


def test_a_wav_says_in_its_header_that_its_length_is_unknown(http: httpx.Client) -> None:
    reply = speak(http)
    assert reply.content[4:8] == reply.content[40:44] == b"\xff" * 4
    assert len(reply.content) == 44 + 2 * SAMPLES
    assert reply.headers["content-type"] == "audio/wav"
    assert (reply.headers["x-sample-rate"], reply.headers["x-channels"]) == (str(RATE), "1")


@pytest.mark.parametrize("from_file", [True, False])
def test_readers_of_wav_read_to_its_end(
    http: httpx.Client, tmp_path: Path, from_file: bool
) -> None:
    data = speak(http).content
    path = tmp_path / "speech.wav"
    path.write_bytes(data)

    def source() -> Any:
        return str(path) if from_file else io.BytesIO(data)

    samples, rate = soundfile.read(source(), dtype="float32")
    assert (samples.size, rate) == (SAMPLES, RATE)
    with wave.open(source(), "rb") as reader:
        assert (reader.getframerate(), reader.getnchannels()) == (RATE, 1)
        assert len(reader.readframes(reader.getnframes())) == 2 * SAMPLES
    with av.open(source()) as container:
        assert sum(frame.samples for frame in container.decode(audio=0)) == SAMPLES


@pytest.mark.parametrize("audio_format", FORMATS)
def test_without_streaming_the_file_is_complete(http: httpx.Client, audio_format: str) -> None:
    reply = speak(http, stream=False, response_format=audio_format)
    assert int(reply.headers["content-length"]) == len(reply.content)
    assert "transfer-encoding" not in reply.headers
    streamed = speak(http, stream=True, response_format=audio_format)
    for name in ("content-type", "x-sample-rate", "x-channels"):
        assert reply.headers[name] == streamed.headers[name]


@pytest.mark.parametrize("audio_format", ["wav", "flac"])
def test_a_complete_file_has_its_length_in_its_header(
    http: httpx.Client, audio_format: str
) -> None:
    reply = speak(http, stream=False, response_format=audio_format)
    assert soundfile.info(io.BytesIO(reply.content)).frames == SAMPLES
    samples, _ = soundfile.read(io.BytesIO(reply.content))
    assert len(samples) == SAMPLES


def test_a_complete_file_that_nobody_waits_for_is_not_made(
    http: httpx.Client, backend: FakeBackend
) -> None:
    backend.script = hanging(AudioDelta(tone()))
    with pytest.raises(httpx.ReadTimeout):
        http.post("/v1/audio/speech", json={**BODY, "stream": False}, timeout=0.5)
    backend.wait_running(0)


def test_an_error_before_the_end_of_a_complete_file_is_an_answer(
    http: httpx.Client, backend: FakeBackend
) -> None:
    backend.script = playing(AudioDelta(tone()), then=EngineFailed("died"))
    reply = http.post("/v1/audio/speech", json={**BODY, "stream": False})
    assert (reply.status_code, reply.json()["error"]["code"]) == (500, "engine_failed")


def test_a_streamed_flac_is_read_to_its_end_and_its_length_is_unknown(http: httpx.Client) -> None:
    """A reader that needs the length, as libsndfile does, asks for `stream: false`."""
    data = speak(http, response_format="flac").content
    with av.open(io.BytesIO(data), "r") as container:
        assert container.duration is None
        assert sum(frame.samples for frame in container.decode(audio=0)) == SAMPLES


@pytest.mark.parametrize("audio_format", FORMATS)
def test_the_media_type_is_that_of_the_format(http: httpx.Client, audio_format: Any) -> None:
    reply = speak(http, response_format=audio_format)
    assert reply.headers["content-type"] == get_media_type(audio_format)


@pytest.mark.parametrize("fields", [{}, {"stream_format": "audio"}], ids=["usual", "asked"])
def test_pcm_is_streamed_at_24_khz(http: httpx.Client, fields: dict[str, Any]) -> None:
    reply = speak(http, response_format="pcm", **fields)
    assert reply.headers["transfer-encoding"] == "chunked"
    assert reply.headers["content-type"] == "audio/pcm"
    assert reply.headers["x-sample-rate"] == "24000"
    assert len(reply.content) == 2 * round(SAMPLES * 24_000 / RATE)


@pytest.mark.parametrize("audio_format", ["wav", "pcm"])
def test_a_sample_rate_is_honoured(http: httpx.Client, audio_format: str) -> None:
    reply = speak(http, response_format=audio_format, sample_rate=16_000)
    header = 44 if audio_format == "wav" else 0
    assert reply.headers["x-sample-rate"] == "16000"
    assert len(reply.content) == header + 2 * round(SAMPLES * 16_000 / RATE)


def test_the_samples_are_those_of_a_batch_which_gives_a_complete_file(http: httpx.Client) -> None:
    streamed = speak(http)
    body = {"model": "org/ming", "items": [{"input": BODY["input"]}]}
    batch = http.post("/v1/audio/speech/batch", json=body).json()
    complete = base64.b64decode(batch["results"][0]["audio"])
    assert int.from_bytes(complete[40:44], "little") == 2 * SAMPLES
    assert streamed.content[44:] == complete[44:]
    samples, rate = soundfile.read(io.BytesIO(streamed.content), dtype="float32")
    assert rate == RATE
    np.testing.assert_allclose(samples, np.tile(tone(), 3), atol=1e-4)


def test_bytes_leave_while_synthesis_goes_on(client: openai.OpenAI, backend: FakeBackend) -> None:
    backend.script = hanging(AudioDelta(tone()))
    with client.audio.speech.with_streaming_response.create(
        model="org/ming", voice="river", input="one", response_format="pcm"
    ) as reply:
        pieces = reply.iter_bytes()  # dropping it would close the connection
        assert len(next(pieces)) > 2 * 4000
        assert backend.running == 1


def test_events_carry_the_same_bytes_and_the_usage(http: httpx.Client) -> None:
    reply = speak(http, stream_format="sse", response_format="pcm")
    *pieces, done = events(reply)
    assert reply.headers["content-type"].startswith("text/event-stream")
    assert {piece["type"] for piece in pieces} == {"speech.audio.delta"}
    audio = b"".join(base64.b64decode(piece["audio"]) for piece in pieces)
    assert audio == speak(http, response_format="pcm").content
    assert done["type"] == "speech.audio.done"
    total = USAGE.prompt_tokens + USAGE.audio_tokens
    assert done["usage"] == {
        "input_tokens": USAGE.prompt_tokens,
        "output_tokens": USAGE.audio_tokens,
        "total_tokens": total,
    }


def test_wav_events_joined_are_one_file(http: httpx.Client) -> None:
    pieces = [base64.b64decode(e["audio"]) for e in events(speak(http, stream_format="sse"))[:-1]]
    assert [piece.startswith(b"RIFF") for piece in pieces] == [True, False, False]
    samples, _ = soundfile.read(io.BytesIO(b"".join(pieces)))
    assert len(samples) == SAMPLES


@pytest.mark.parametrize("voice", ["river", {"id": "river"}])
def test_a_voice_is_a_name_or_an_object(
    http: httpx.Client, backend: FakeBackend, voice: Any
) -> None:
    speak(http, voice=voice, seed=2**63 - 1, speed=1)
    assert backend.requests[0].voice == Voice("river", 2**63 - 1)


def test_without_voice_and_seed_the_default_speaks_with_its_own_noise(
    http: httpx.Client, backend: FakeBackend
) -> None:
    speak(http)
    speak(http, voice="default")
    first, second = (request.voice for request in backend.requests)
    assert first.name == second.name == "prompt"
    assert first.seed != second.seed


@pytest.mark.parametrize("fields", [{}, {"stream_format": "audio"}, {"response_format": "pcm"}])
def test_no_samples_are_still_a_valid_answer(
    http: httpx.Client, backend: FakeBackend, fields: dict[str, Any]
) -> None:
    backend.script = playing(Finished("stop", Usage()))
    content = speak(http, **fields).content
    assert len(content) == (0 if "response_format" in fields else 44)


def test_4096_characters_are_spoken(http: httpx.Client, backend: FakeBackend) -> None:
    backend.capabilities = EVERYTHING
    speak(http, input="字" * 4096)
    assert len(backend.requests[0].text) == 4096


async def test_the_asynchronous_client_streams_the_body(client: openai.OpenAI) -> None:
    async with (
        openai.AsyncOpenAI(base_url=client.base_url, api_key="none") as other,
        other.audio.speech.with_streaming_response.create(
            model="org/ming", voice="river", input="one two three", response_format="pcm"
        ) as reply,
    ):
        data = b"".join([piece async for piece in reply.iter_bytes()])
    assert len(data) == 2 * round(SAMPLES * 24_000 / RATE)
