"""Pictures, sound and video through the running server, kind ones and hostile ones."""

import asyncio
import base64
import io
import time
from pathlib import Path
from typing import Any

import httpx
import openai
import psutil
import pytest
import soundfile

from sglang_omni.engines.runtime.transport import HEARTBEAT_INTERVAL_S
from tests.media.files import encoded, film, movie, picture, tone, wav
from tests.server.chats import CHATS, answer_of, messages_of, whole
from tests.server.hostile import Hostile, hostile_addresses, hostile_files
from tests.server.running import RunningServer, wait_until
from tests.testing.golden import load_case

QUIET: dict[str, Any] = {"model": "ming-omni", "temperature": 0, "max_tokens": 12}
HOSTILE_S = 5.0
GOOD_AT_ONCE = 8
MEMORY_ROOM = 64 << 20


@pytest.fixture
def client(server: RunningServer) -> openai.OpenAI:
    return openai.OpenAI(base_url=server.api, api_key="none", max_retries=0)


def uri(kind: str, data: bytes) -> str:
    return f"data:{kind};base64,{base64.b64encode(data).decode()}"


def image_part(seed: int = 0) -> dict[str, Any]:
    return {"type": "image_url", "image_url": {"url": uri("image/png", fresh(seed))}}


def fresh(seed: int) -> bytes:
    return encoded(picture(size=(96, 64), seed=seed))


def clip_part() -> dict[str, Any]:
    data = base64.b64encode(wav(tone(0.7), 16_000)).decode()
    return {"type": "input_audio", "input_audio": {"data": data, "format": "wav"}}


def film_part() -> dict[str, Any]:
    return {"type": "video_url", "video_url": {"url": uri("video/mp4", movie(30))}}


def user(*parts: dict[str, Any]) -> dict[str, Any]:
    return {"messages": [{"role": "user", "content": list(parts)}]}


def text(words: str) -> dict[str, Any]:
    return {"type": "text", "text": words}


@pytest.mark.parametrize("name", CHATS)
def test_a_chat_gives_the_released_models_answer(client: openai.OpenAI, name: str) -> None:
    case = load_case(name)
    asked = {**QUIET, "messages": messages_of(case), "max_tokens": len(case["generated_ids"])}
    answer = client.chat.completions.create(**asked)
    assert answer.usage is not None
    assert answer.usage.prompt_tokens == len(case["input_ids"])
    assert whole(answer.choices[0].message.content or "") == answer_of(case)


def test_the_sound_of_a_video_is_heard_unless_a_request_says_otherwise(
    client: openai.OpenAI,
) -> None:
    def count(file: bytes, **fields: Any) -> tuple[int, int]:
        """How many tokens of sound and of pictures a video has."""
        part = {"type": "video_url", "video_url": {"url": uri("video/x-matroska", file)}}
        answer = client.chat.completions.create(**QUIET, **user(part), extra_body=fields)
        assert answer.usage is not None
        details: Any = answer.usage.prompt_tokens_details
        return details.audio_tokens, details.image_tokens

    heard, silent = film(3.0, tone(3.0)[:, 0]), film(3.0)
    sound, pictures = count(heard)
    assert sound == 75  # Of 300 frames of the mel, four share a token.
    assert count(heard, use_audio_in_video=True) == (sound, pictures)
    assert count(heard, use_audio_in_video=False) == (0, pictures)
    assert count(heard, mm_processor_kwargs={"use_audio_in_video": False}) == (0, pictures)
    assert count(silent) == count(silent, use_audio_in_video=True) == (0, pictures)
    assert count(heard, video_max_frames=2)[1] == pictures // 3
    assert count(heard, video_fps=4) == (sound, 2 * pictures)


def test_every_kind_of_medium_in_one_message(client: openai.OpenAI) -> None:
    alone = client.chat.completions.create(**QUIET, **user(text("What is this?")))
    parts = (image_part(1), film_part(), text("What is this?"), clip_part())
    answer = client.chat.completions.create(**QUIET, **user(*parts))
    assert answer.usage is not None
    assert alone.usage is not None
    # 6 rows for 96 x 64, 320 x 448 in pairs of frames for the video, 18 rows for 0.7 s.
    assert answer.usage.prompt_tokens > alone.usage.prompt_tokens + 6 + 140 + 18
    assert answer.choices[0].message.content != alone.choices[0].message.content


def test_an_image_and_a_clip_are_answered_in_streamed_text_and_speech(
    client: openai.OpenAI,
) -> None:
    stream = client.chat.completions.create(
        **{**QUIET, "max_tokens": 60},
        **user(image_part(2), text("Answer: "), clip_part()),
        stream=True,
        modalities=["text", "audio"],
        audio={"voice": "DB30", "format": "wav"},
    )
    said, sound = "", b""
    for chunk in stream:
        delta = chunk.choices[0].delta if chunk.choices else None
        said += (delta and delta.content) or ""
        sound += base64.b64decode((getattr(delta, "audio", None) or {}).get("data", ""))
    samples, rate = soundfile.read(io.BytesIO(sound))
    assert said
    assert rate == 44100
    assert samples.size > rate


def test_the_lists_of_the_body_say_what_parts_say(client: openai.OpenAI) -> None:
    parts = client.chat.completions.create(
        **QUIET, **user(image_part(3), text("Say."), clip_part())
    )
    clip = clip_part()["input_audio"]["data"]
    lists = {
        "images": [image_part(3)["image_url"]["url"]],
        "audios": [f"data:audio/wav;base64,{clip}"],
    }
    listed = client.chat.completions.create(**QUIET, **user(text("Say.")), extra_body=lists)
    assert listed.choices[0].message.content == parts.choices[0].message.content
    assert listed.usage is not None
    assert parts.usage is not None
    assert listed.usage.prompt_tokens == parts.usage.prompt_tokens


def test_a_picture_shown_again_is_not_encoded_again(
    server: RunningServer, client: openai.OpenAI
) -> None:
    def counters() -> tuple[float, ...]:
        counted = server.engine("encoders")["counters"]
        return tuple(counted[name] for name in ("images", "image_cache_misses", "image_cache_hits"))

    shown = image_part(4)
    # What earlier tests had encoded is told by a beat that may still be on its way.
    time.sleep(4 * HEARTBEAT_INTERVAL_S)
    images, misses, hits = counters()
    for words in ("What?", "Where?", "Why?"):
        client.chat.completions.create(**QUIET, **user(shown, text(words)))
    assert counters()[1:] == (misses + 1, hits + 2)
    wait_until(lambda: counters()[0] > images, 10, "the engine's beat")
    assert counters()[0] == images + 1


async def refuse(http: httpx.AsyncClient, hostile: Hostile, folder: Path) -> None:
    """A hostile medium is a 400 that names its field and says why, soon."""
    began = time.monotonic()
    body = {**QUIET, **user(hostile.part(folder), text("What is it?"))}
    reply = await http.post("/v1/chat/completions", json=body)
    assert reply.status_code == 400, (hostile.name, reply.text)
    error = reply.json()["error"]
    assert error["param"].startswith("messages.0.content.0."), (hostile.name, error)
    assert hostile.refusal in error["message"], (hostile.name, error)
    assert time.monotonic() - began < HOSTILE_S, hostile.name


async def keep_asking(http: httpx.AsyncClient, number: int, enough: asyncio.Event) -> int:
    """Send one good request after the other; returns how many were answered, which is all."""
    answered = 0
    while not enough.is_set():
        seed = 100 + number + 10 * answered
        body = {**QUIET, **user(image_part(seed), text("What is it?"), clip_part())}
        reply = await http.post("/v1/chat/completions", json=body)
        assert reply.status_code == 200, reply.text
        assert reply.json()["choices"][0]["message"]["content"]
        answered += 1
    return answered


def memory_of(server: RunningServer) -> int:
    """Bytes that the API process and the decoders have for themselves.

    The engines load libraries with their first requests.
    """
    decoders = [server.engine(f"media_decoder-{number}")["pid"] for number in range(2)]
    return sum(psutil.Process(pid).memory_full_info().uss for pid in (server.pid, *decoders))


async def test_hostile_media_are_refused_while_good_requests_go_on(
    server: RunningServer, tmp_path: Path
) -> None:
    limits = httpx.Limits(max_connections=16)
    async with httpx.AsyncClient(base_url=server.url, timeout=60, limits=limits) as http:
        everything = [*hostile_files(), *hostile_addresses()]
        # Once for what is loaded at the first use, once to be measured.
        for hostile in everything[:12]:
            await refuse(http, hostile, tmp_path)
        before = memory_of(server)
        enough = asyncio.Event()
        good = [
            asyncio.create_task(keep_asking(http, number, enough)) for number in range(GOOD_AT_ONCE)
        ]
        for hostile in everything:
            await refuse(http, hostile, tmp_path)
        enough.set()
        assert min(await asyncio.gather(*good)) > 0
    wait_until(lambda: memory_of(server) < before + MEMORY_ROOM, 5, "memory given back")
    assert server.ready_status() == 200


def test_decoders_that_all_die_do_not_take_the_server_out_of_service(
    server: RunningServer,
) -> None:
    before = [server.engine(f"media_decoder-{number}") for number in range(2)]
    for decoder in before:
        psutil.Process(decoder["pid"]).kill()

    def are_back() -> bool:
        assert server.ready_status() == 200
        now = [server.engine(f"media_decoder-{number}") for number in range(2)]
        restarted = all(a["restarts"] > b["restarts"] for a, b in zip(now, before, strict=True))
        return restarted and all(one["state"] == "ready" for one in now)

    wait_until(are_back, 10, "restarts")


def test_a_decoder_that_dies_is_the_files_fault_and_comes_back(
    server: RunningServer, client: openai.OpenAI
) -> None:
    killed = server.engine("media_decoder-0")
    psutil.Process(killed["pid"]).kill()
    answer = client.chat.completions.create(**QUIET, **user(image_part(5), text("Still there?")))
    assert answer.choices[0].message.content
    wait_until(
        lambda: server.engine("media_decoder-0")["restarts"] > killed["restarts"], 10, "restart"
    )
    wait_until(lambda: server.ready_status() == 200, 10, "ready again")
