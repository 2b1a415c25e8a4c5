"""The bundled model does on the public routes what they promise, or says that it cannot."""

import base64
import io
import json
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import httpx
import numpy as np
import openai
import pytest
import soundfile
import soxr

from benchmarks.evaluation.datasets import bundled
from cookbook.ming_mini_2.thinker.evaluation.first_prompts import ask_all, read_prompts
from measurement.word_errors import count_word_errors
from sglang_omni.entrypoints.startup.checkpoint import MING_MINI
from sglang_omni.models.ming.speech.voices import read_presets
from tests.entrypoints.realtime.sounds import RATE, pcm16, silence
from tests.media.files import film
from tests.server.running import HTTP, RunningServer
from tests.server.starters import answers_rightly, declared_starters
from tests.server.test_realtime import conversation, say, until

MODEL = "ming-omni"


def recording(voice: str) -> bytes:
    return (MING_MINI / "talker" / "data" / "voices" / f"{voice}.flac").read_bytes()


def recorded_texts() -> dict[str, str]:
    """What each voice's recording says."""
    return {preset.name: preset.text for preset in read_presets(MING_MINI / "talker")}


def transcript(server: RunningServer, clip: bytes) -> str:
    with openai.OpenAI(base_url=server.api, api_key="none") as client:
        return client.audio.transcriptions.create(model=MODEL, file=("clip.wav", clip)).text


def speech(server: RunningServer, text: Any, **fields: Any) -> httpx.Response:
    body = {"model": MODEL, "input": text, "seed": 1, **fields}
    return httpx.post(f"{server.api}/audio/speech", json=body, timeout=60)


def chat(server: RunningServer, text: str) -> str:
    body = {"model": MODEL, "messages": [{"role": "user", "content": text}], "temperature": 0}
    reply = httpx.post(f"{server.api}/chat/completions", json=body, timeout=60)
    answer: str = reply.json()["choices"][0]["message"]["content"]
    return answer


def wrong_words(said: str, heard: str) -> int:
    return count_word_errors(said, heard, "en").wrong


def test_recordings_are_written_down(default_server: RunningServer) -> None:
    wrong = total = 0
    for voice, said in recorded_texts().items():
        heard = transcript(default_server, recording(voice))
        wrong += wrong_words(said, heard)
        total += len(said.split())
    # One word in three is wrong; a model that answers instead gets most of them wrong.
    assert wrong / total < 0.4


@pytest.mark.parametrize(
    "question", ["What is seven plus five?", "What is nine times eight?", "What can you do?"]
)
def test_a_spoken_question_is_written_down_and_not_answered(
    default_server: RunningServer, question: str
) -> None:
    heard = transcript(default_server, speech(default_server, question, voice="joe").content)
    assert wrong_words(question, heard) == 0, heard


def test_the_spoken_questions_of_the_benchmarks_are_understood(
    default_server: RunningServer,
) -> None:
    rows = bundled.spoken()
    wrong = [
        wrong_words(row["question"], transcript(default_server, row["audio"]["bytes"]))
        for row in rows
    ]
    # The model reads them all right on the machine that they were made on.
    assert len(rows) == 6
    assert sum(wrong) <= 2, wrong


def test_the_sound_of_a_video_is_refused_by_name(default_server: RunningServer) -> None:
    samples, rate = soundfile.read(io.BytesIO(recording("joe")), dtype="float32")
    sound = film(len(samples) / rate, samples, rate=rate)
    uri = f"data:video/mp4;base64,{base64.b64encode(sound).decode()}"
    content = [{"type": "video_url", "video_url": {"url": uri}}]
    body = {"model": MODEL, "messages": [{"role": "user", "content": content}], "max_tokens": 8}

    def ask(**fields: Any) -> httpx.Response:
        url = f"{default_server.api}/chat/completions"
        return httpx.post(url, json={**body, **fields}, timeout=60)

    refused = ask(use_audio_in_video=True)
    assert refused.status_code == 400
    assert refused.json()["error"]["param"] == "use_audio_in_video"
    assert "Ming-mini" in refused.json()["error"]["message"]
    seen = ask().json()["usage"]["prompt_tokens_details"]
    assert seen["image_tokens"] > 0
    assert seen["audio_tokens"] == 0


@pytest.mark.parametrize("seconds", [0.1, 2.0, 20.0])
def test_silence_is_an_empty_transcript(default_server: RunningServer, seconds: float) -> None:
    clip = io.BytesIO()
    soundfile.write(clip, np.zeros(int(seconds * 16_000)), 16_000, format="WAV")
    assert transcript(default_server, clip.getvalue()) == ""


def test_noise_is_an_empty_transcript_even_after_a_chat_about_it(
    default_server: RunningServer,
) -> None:
    clip = io.BytesIO()
    noise = 0.05 * np.random.default_rng(1).normal(size=32_000)
    soundfile.write(clip, noise, 16_000, format="WAV")
    heard = {"data": base64.b64encode(clip.getvalue()).decode(), "format": "wav"}
    message = {"role": "user", "content": [{"type": "input_audio", "input_audio": heard}]}
    body = {"model": MODEL, "messages": [message], "max_tokens": 4}
    assert httpx.post(f"{default_server.api}/chat/completions", json=body).status_code == 200
    assert transcript(default_server, clip.getvalue()) == ""


async def test_what_the_user_said_in_realtime_is_not_the_answer(
    default_server: RunningServer,
) -> None:
    spoken = speech(default_server, "What is seven plus five?", voice="joe").content
    samples, rate = soundfile.read(io.BytesIO(spoken), dtype="float32")
    session = {"type": "realtime", "audio": {"input": {"transcription": {}}}}
    async with conversation(default_server) as connection:
        await connection.session.update(session=session)
        await say(connection, pcm16(soxr.resample(samples, rate, RATE)), pcm16(silence(0.8)))
        events = await until(connection, "conversation.item.input_audio_transcription.completed")
    heard = events[-1].transcript
    assert wrong_words("What is seven plus five?", heard) == 0, heard


@pytest.mark.parametrize(
    ("fields", "param"),
    [
        ({"task": "sound", "input": "Rain on a roof."}, "task"),
        ({"input": "你好，世界。"}, "input"),
        ({"input": "Привет, мир."}, "input"),
        ({"instructions": {"dialect": "Cantonese"}}, "instructions.dialect"),
    ],
)
def test_what_it_has_not_learnt_is_refused(
    default_server: RunningServer, fields: dict[str, Any], param: str
) -> None:
    reply = speech(default_server, "Hello.", **fields)
    assert reply.status_code == 400
    assert reply.json()["error"]["param"] == param
    assert "Ming-mini" in reply.json()["error"]["message"]


def instructed_samples(server: RunningServer, instructions: str | dict[str, str]) -> np.ndarray:
    """What is spoken as it is asked for, 16-bit samples [n] at 24 kHz."""
    said = "We can meet at the station on Friday."
    reply = speech(server, said, instructions=instructions, response_format="pcm")
    assert reply.status_code == 200, reply.text
    assert "X-Ignored-Fields" not in reply.headers
    return np.frombuffer(reply.content, "<i2").astype(float)


def loudness(samples: np.ndarray) -> float:
    return float(np.sqrt(np.mean(samples**2)))


def voicing(samples: np.ndarray) -> float:
    """The mean correlation of the louder half of 40 ms windows with themselves a period later."""
    windows = samples[: len(samples) // 960 * 960].reshape(-1, 960)
    levels = np.mean(windows**2, axis=1)
    power = np.abs(np.fft.rfft(windows[levels >= np.median(levels)], 2048)) ** 2
    correlation = np.fft.irfft(power)[:, :400]
    # Periods of 60 to 400 Hz at 24 kHz.
    return float(np.mean(correlation[:, 60:].max(axis=1) / correlation[:, 0]))


@pytest.mark.parametrize(
    ("less", "more", "measure", "factor"),
    [
        ("Speak fast.", "Speak slowly.", len, 1.25),
        ({"speed": "fast"}, {"speed": "slow"}, len, 1.25),
        ("Speak quietly.", "Speak loudly.", loudness, 2),
        ({"volume": "low"}, {"volume": "high"}, loudness, 2),
        ({"emotion": "sad"}, {"emotion": "happy"}, loudness, 1.25),
        ({"style": "whisper"}, {"style": "lively"}, voicing, 1.5),
    ],
)
def test_speech_follows_instructions(
    default_server: RunningServer,
    less: str | dict[str, str],
    more: str | dict[str, str],
    measure: Callable[[np.ndarray], float],
    factor: float,
) -> None:
    low, high = (measure(instructed_samples(default_server, asked)) for asked in (less, more))
    assert high > factor * low


def test_a_break_in_ssml_is_silence_and_what_will_be_spoken_is_told(
    default_server: RunningServer,
) -> None:
    ssml = "<speak>The <sub alias='red car'>R.C.</sub> is here. <break time='{}'/>Good.</speak>"
    short, long = (
        len(speech(default_server, ssml.format(time), response_format="pcm").content)
        for time in ("100ms", "1100ms")
    )
    # 16-bit samples at 24 kHz.
    assert long - short == pytest.approx(2 * 24_000, abs=100)
    body = {"input": ssml.format("1s")}
    told = HTTP.post(f"{default_server.api}/audio/normalize", json=body).json()
    assert told["text"] == "The red car is here. Good."


def test_starter_prompts_are_answered(default_server: RunningServer) -> None:
    card, *_ = HTTP.get(f"{default_server.api}/models").json()["data"]
    starters = card["capabilities"]["starter_prompts"]
    assert starters == declared_starters()
    answers = {text: chat(default_server, text) for text in starters}
    assert not [one for one in answers.items() if not answers_rightly(*one)]
    # The README shows this one.
    assert answers["What is 17 + 25?"] == "17 + 25 = 42. The answer is 42."


async def test_first_prompts_of_a_newcomer_are_answered_well(
    default_server: RunningServer,
) -> None:
    """Every fourth of the fifty: sums, facts, a poem, pictures, functions, speech."""
    judged = await ask_all(default_server.url, read_prompts()[1::4])
    assert len(judged) == 13
    broken = [(one.prompt, one.replies[-1].text) for one in judged if one.broken]
    assert len(broken) <= 2, broken


@pytest.mark.parametrize("choice", ["auto", "required"])
def test_a_function_is_called_with_what_the_user_said(
    default_server: RunningServer, choice: str
) -> None:
    parameters = {
        "type": "object",
        "properties": {"city": {"type": "string"}},
        "required": ["city"],
    }
    tool = {"type": "function", "function": {"name": "get_weather", "parameters": parameters}}
    message = {"role": "user", "content": "What is the weather in Lisbon?"}
    body = {"model": MODEL, "messages": [message], "tools": [tool], "tool_choice": choice}
    reply = HTTP.post(f"{default_server.api}/chat/completions", json={**body, "temperature": 0})
    (call,) = reply.json()["choices"][0]["message"]["tool_calls"]
    assert call["function"]["name"] == "get_weather"
    assert json.loads(call["function"]["arguments"]) == {"city": "Lisbon"}


SEEDED = (
    "The red car is in the garden.",
    "Hello from Ming.",
    "Yes.",
    "She has seven green apples.",
)


def test_a_seed_fixes_the_samples_and_others_change_them_by_rounding(
    default_server: RunningServer,
) -> None:
    def samples(number: int) -> np.ndarray:
        fields = {"seed": number % 4, "response_format": "pcm", "sample_rate": 44_100}
        reply = speech(default_server, SEEDED[number % 4], **fields)
        return np.frombuffer(reply.content, "<i2").astype(float)

    alone = [samples(number) for number in range(4)]
    assert all(np.array_equal(samples(number), alone[number]) for number in range(4))
    with ThreadPoolExecutor(8) as clients:
        among_eight = list(clients.map(samples, range(8)))
    for number, heard in enumerate(among_eight):
        expected = alone[number % 4]
        assert heard.shape == expected.shape
        # At least 50 dB below the speech; usually at most one step of 16 bits.
        assert np.mean((heard - expected) ** 2) < 1e-5 * np.mean(expected**2)


def test_speakers_take_turns_and_their_times_are_told(default_server: RunningServer) -> None:
    """Each turn is heard between the times that are told for it, and words where there is sound."""
    said = ("The train leaves at seven.", "Tell me about the sea.")
    turns = [
        {"voice": voice, "text": text} for voice, text in zip(("joe", "alpha"), said, strict=True)
    ]
    answer = speech(default_server, turns, verbose=True).json()
    samples, rate = soundfile.read(io.BytesIO(base64.b64decode(answer["audio"])), dtype="float32")
    assert answer["duration"] == pytest.approx(len(samples) / rate, abs=1e-3)
    segments = answer["segments"]
    assert [(one["text"], one["voice"], one["turn"]) for one in segments] == [
        (said[0], "joe", 0),
        (said[1], "alpha", 1),
    ]
    for segment in segments:
        clip = io.BytesIO()
        part = samples[round(segment["start"] * rate) : round(segment["end"] * rate)]
        soundfile.write(clip, part, rate, format="WAV")
        heard = transcript(default_server, clip.getvalue())
        assert wrong_words(segment["text"], heard) <= 1, heard
    assert [word["word"] for word in answer["words"]] == " ".join(said).replace(".", "").split()
    for word in answer["words"]:
        spoken = samples[round(word["start"] * rate) : round(word["end"] * rate)]
        assert np.abs(spoken).mean() > 1e-3
