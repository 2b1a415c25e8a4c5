"""The running server, met as its users meet it: with the official `openai` client."""

import asyncio
import base64
import io
import re
import struct
import time
from collections.abc import Iterator
from typing import Any

import httpx
import numpy as np
import openai
import psutil
import pytest
import soundfile
from openai.types.chat import ChatCompletionChunk

from tests.server.running import RunningServer, wait_until
from tests.testing.machine import PATIENCE

LINE = "The mill stands by the river, and the river runs past the mill."
STORY = "Tell me a long story."
QUIET: dict[str, Any] = {"temperature": 0, "max_tokens": 24}
# Full scale of 16-bit samples is 1; fp32 synthesis of the same noise agrees to this.
SAME_AUDIO = 1e-4


@pytest.fixture
def client(server: RunningServer) -> openai.OpenAI:
    return openai.OpenAI(base_url=server.api, api_key="none", max_retries=0)


@pytest.fixture
def concurrent(server: RunningServer) -> openai.AsyncOpenAI:
    return openai.AsyncOpenAI(base_url=server.api, api_key="none", max_retries=0)


def ask(text: str) -> dict[str, Any]:
    return {"model": "ming-omni", "messages": [{"role": "user", "content": text}]}


def spoken(audio_format: str, seed: int = 7) -> dict[str, Any]:
    return {
        "modalities": ["text", "audio"],
        "audio": {"voice": "DB30", "format": audio_format},
        "seed": seed,
    }


def read_wav(data: bytes) -> np.ndarray:
    samples, rate = soundfile.read(io.BytesIO(data), dtype="float32")
    assert rate == 44100
    assert samples.ndim == 1
    assert np.isfinite(samples).all()
    return samples


def contents(chunks: list[ChatCompletionChunk]) -> list[str]:
    return [c.choices[0].delta.content for c in chunks if c.choices and c.choices[0].delta.content]


def audio_deltas(chunks: list[ChatCompletionChunk]) -> Iterator[tuple[int, dict[str, Any]]]:
    """Position and content of each `delta.audio`, which the client passes through untyped."""
    for place, chunk in enumerate(chunks):
        audio = getattr(chunk.choices[0].delta, "audio", None) if chunk.choices else None
        if audio:
            yield place, audio


def test_ready_within_45_seconds(server: RunningServer) -> None:
    assert server.seconds_to_ready < 45 * PATIENCE
    assert server.ready_status() == 200


def test_the_api_process_never_loads_torch_or_sglang(server: RunningServer) -> None:
    libraries = {entry.path for entry in psutil.Process(server.pid).memory_maps()}
    assert not [path for path in libraries if "libtorch" in path or "sgl_kernel" in path]


def test_every_counter_and_no_gauge_is_named_total(server: RunningServer) -> None:
    """Also of SGLang's series, which are shown as they are."""

    def kinds() -> dict[str, str]:
        shown = httpx.get(f"{server.url}/metrics").text
        return dict(re.findall(r"^# TYPE (\S+) (\w+)$", shown, re.MULTILINE))

    # The thinker tells of its cache with a heartbeat after it is ready.
    wait_until(lambda: "sgl_omni_engine_kv_tokens_capacity" in kinds(), 5, "the cache's size")
    assert {"counter", "gauge", "histogram"} <= set(kinds().values())
    for name, kind in kinds().items():
        assert name.endswith("_total") == (kind == "counter"), (name, kind)


def test_every_example_of_the_documentation_is_answered(server: RunningServer) -> None:
    tried = []
    for path, methods in httpx.get(f"{server.url}/openapi.json").json()["paths"].items():
        content = methods.get("post", {}).get("requestBody", {}).get("content", {})
        for name, example in content.get("application/json", {}).get("examples", {}).items():
            reply = httpx.post(f"{server.url}{path}", json=example["value"], timeout=120)
            # This checkpoint draws none; tests/server/test_images.py has one that does.
            assert not path.startswith("/v1/images/")
            assert reply.status_code == 200, (path, name, reply.text)
            # A batch, and a stream of events, tell of errors with a status of 200.
            assert not re.search(r'"error": ?[^n]', reply.text), (path, name)
            tried.append(name)
    assert len(tried) >= 7


def test_streamed_text_equals_the_whole_answer(client: openai.OpenAI) -> None:
    # Many tokens: those that wait while the machine is busy elsewhere arrive as one delta.
    many: dict[str, Any] = {"temperature": 0, "max_tokens": 160}
    whole = client.chat.completions.create(**ask("How many apples?"), **many)
    chunks = list(
        client.chat.completions.create(
            **ask("How many apples?"), **many, stream=True, stream_options={"include_usage": True}
        )
    )
    assert "".join(contents(chunks)) == whole.choices[0].message.content
    assert len(contents(chunks)) > 5
    assert chunks[-1].usage is not None
    assert whole.usage is not None
    assert chunks[-1].usage.completion_tokens == whole.usage.completion_tokens


def test_a_stop_string_ends_the_answer_before_it(client: openai.OpenAI) -> None:
    whole = client.chat.completions.create(**ask("How many apples?"), **QUIET)
    text = whole.choices[0].message.content
    assert text is not None
    stop = text[6:9]
    cut = client.chat.completions.create(**ask("How many apples?"), **QUIET, stop=stop)
    assert cut.choices[0].message.content == text[: text.index(stop)]
    assert cut.choices[0].finish_reason == "stop"


def test_speech_is_a_44100_hz_mono_16_bit_wav(client: openai.OpenAI) -> None:
    data = client.audio.speech.create(
        model="ming-omni", voice="DB30", input=LINE, response_format="wav"
    ).read()
    assert data[:4] == b"RIFF"
    assert struct.unpack("<HHIIHH", data[20:36]) == (1, 1, 44100, 88200, 2, 16)
    samples = read_wav(data)
    assert samples.size > 44100
    assert np.abs(samples).max() > 1e-3


def test_streamed_speech_joins_to_the_file_of_the_same_seed(client: openai.OpenAI) -> None:
    text = " ".join([LINE] * 6)
    asked: Any = {"model": "ming-omni", "voice": "DB30", "response_format": "wav"}
    body = {**asked, "items": [{"input": text}], "seed": 3}
    batch = httpx.post(f"{client.base_url}audio/speech/batch", json=body, timeout=60).json()
    whole = base64.b64decode(batch["results"][0]["audio"])
    with client.audio.speech.with_streaming_response.create(
        **asked, input=text, extra_body={"seed": 3}
    ) as response:
        pieces = list(response.iter_bytes())
    assert len(pieces) > 3
    streamed, complete = read_wav(b"".join(pieces)), read_wav(whole)
    assert streamed.shape == complete.shape
    assert np.abs(streamed - complete).max() <= SAME_AUDIO


def test_pcm_is_24_khz_unless_another_rate_is_asked(client: openai.OpenAI) -> None:
    def seconds(**extra: Any) -> float:
        data = client.audio.speech.create(
            model="ming-omni",
            voice="DB30",
            input=LINE,
            response_format="pcm",
            extra_body={"seed": 3, **extra},
        ).read()
        return len(data) / 2 / extra.get("sample_rate", 24_000)

    assert seconds() == pytest.approx(seconds(sample_rate=44_100), abs=0.01)


def test_a_spoken_answer_has_audio_and_its_transcript(client: openai.OpenAI) -> None:
    answer = client.chat.completions.create(**ask(STORY), **QUIET, **spoken("wav"))
    message = answer.choices[0].message
    assert message.audio is not None
    assert message.audio.transcript.strip() == (message.content or "").strip()
    assert read_wav(base64.b64decode(message.audio.data)).size > 44100
    assert answer.usage is not None
    assert answer.usage.completion_tokens_details is not None
    assert answer.usage.completion_tokens_details.audio_tokens


def test_speech_starts_before_a_long_answer_ends(client: openai.OpenAI) -> None:
    chunks = list(
        client.chat.completions.create(
            **ask(STORY), **spoken("wav"), temperature=0, max_tokens=400, stream=True
        )
    )
    audio = list(audio_deltas(chunks))
    data = [base64.b64decode(delta["data"]) for _, delta in audio if delta.get("data")]
    first_sound = next(place for place, delta in audio if delta.get("data"))
    last_text = max(p for p, c in enumerate(chunks) if c.choices and c.choices[0].delta.content)
    assert first_sound < last_text
    assert read_wav(b"".join(data)).size > 44100
    transcript = "".join(delta.get("transcript", "") for _, delta in audio)
    assert transcript.strip() == "".join(contents(chunks)).strip()
    assert audio[-1][1]["expires_at"] > time.time() - 60


async def test_eight_concurrent_mixed_requests_complete(concurrent: openai.AsyncOpenAI) -> None:
    async def speech() -> int:
        created = await concurrent.audio.speech.create(
            model="ming-omni", voice="DB30", input=LINE, response_format="wav"
        )
        return read_wav(created.content).size

    async def text() -> int:
        answer = await concurrent.chat.completions.create(**ask(STORY), **QUIET)
        return len(answer.choices[0].message.content or "")

    async def streamed() -> int:
        stream = await concurrent.chat.completions.create(
            **ask(STORY), **QUIET, **spoken("pcm16"), stream=True
        )
        chunks = [chunk async for chunk in stream]
        return sum(len(delta.get("data", "")) for _, delta in audio_deltas(chunks))

    async def spoken_answer() -> int:
        answer = await concurrent.chat.completions.create(**ask(STORY), **QUIET, **spoken("wav"))
        audio = answer.choices[0].message.audio
        return len(audio.data) if audio else 0

    sizes = await asyncio.gather(*(kind() for kind in (speech, text, streamed, spoken_answer) * 2))
    assert all(sizes), sizes


@pytest.mark.alone
async def test_a_cancelled_stream_frees_slot_and_kv_within_a_second(
    server: RunningServer, concurrent: openai.AsyncOpenAI
) -> None:
    wait_until(server.is_idle, 5, "idle before")
    stream = await concurrent.chat.completions.create(
        **ask(STORY), **spoken("pcm16"), temperature=0, max_tokens=2000, stream=True
    )
    async for chunk in stream:
        if list(audio_deltas([chunk])) and not server.is_idle():
            break
    await stream.close()
    assert wait_until(server.is_idle, 1.0, "slot and KV free after the client went away") < 1.0


@pytest.mark.alone
async def test_a_cancelled_whole_answer_frees_slot_and_kv_within_a_second(
    server: RunningServer,
) -> None:
    wait_until(server.is_idle, 5, "idle before")
    body = {**ask(STORY), "temperature": 0, "max_tokens": 2000}
    async with httpx.AsyncClient() as http:
        request = asyncio.create_task(
            http.post(f"{server.api}/chat/completions", json=body, timeout=60)
        )
        while server.is_idle():
            await asyncio.sleep(0.05)
        request.cancel()
        await asyncio.gather(request, return_exceptions=True)
    wait_until(server.is_idle, 1.0, "KV free after the client went away")


@pytest.mark.parametrize(
    ("change", "param"),
    [
        ({"voice": "nobody"}, "voice"),
        ({"input": " "}, "input"),
        ({"input": "***"}, "input"),
        ({"pitch": 2}, "pitch"),
    ],
)
def test_bad_speech_requests_name_the_field(
    server: RunningServer, change: dict[str, Any], param: str
) -> None:
    body = {"model": "ming-omni", "voice": "DB30", "input": LINE, **change}
    response = httpx.post(f"{server.api}/audio/speech", json=body)
    assert response.status_code == 400
    assert response.json()["error"]["param"] == param
