"""Voices of one's own and the speech routes, on the running server, with the official client."""

import base64
import io
import json
from typing import Any

import httpx
import numpy as np
import openai
import pytest
import soundfile
from websockets.sync.client import connect

from tests.server.running import RunningServer, wait_until
from tests.testing.golden import TINY

RECORDING = TINY / "talker" / "data" / "spks" / "prompt.wav"
WORDS = json.loads((TINY / "talker" / "data" / "voice_name.json").read_text())["DB30"]
LINE = "The mill stands by the river, and the river runs past the mill."
SAME_AUDIO = 1e-3


@pytest.fixture
def client(server: RunningServer) -> openai.OpenAI:
    return openai.OpenAI(base_url=server.api, api_key="none", max_retries=0)


def spoken(client: openai.OpenAI, voice: str | None = None, **more: Any) -> np.ndarray:
    """Samples of the line, at 44.1 kHz."""
    extra = {"seed": 5, "max_seconds": 2.0, **more}
    asked: Any = voice or openai.NOT_GIVEN
    reply = client.audio.speech.create(
        model="ming-omni", input=LINE, response_format="wav", voice=asked, extra_body=extra
    )
    samples, rate = soundfile.read(io.BytesIO(reply.read()), dtype="float32")
    assert rate == 44_100
    assert samples.size > 10_000
    assert np.isfinite(samples).all()
    return samples


def recording() -> str:
    return "data:audio/wav;base64," + base64.b64encode(RECORDING.read_bytes()).decode()


def test_a_stored_voice_an_inline_recording_and_each_other_sound_alike(
    server: RunningServer, client: openai.OpenAI
) -> None:
    files = {"audio_sample": ("me.wav", RECORDING.read_bytes(), "audio/wav")}
    fields = {"name": "Mine", "consent": "I am the speaker", "ref_text": WORDS["prompt_text"]}
    made = httpx.post(f"{server.api}/audio/voices", data=fields, files=files, timeout=60)
    assert made.status_code == 201, made.text
    assert made.json()["has_speaker_vector"]
    assert made.json()["duration_seconds"] > 1
    try:
        stored = spoken(client, "Mine")
        assert np.abs(stored - spoken(client, made.json()["id"])).max() < SAME_AUDIO
        inline = {"ref_audio": recording(), "ref_text": WORDS["prompt_text"]}
        assert np.abs(stored - spoken(client, **inline)).max() < SAME_AUDIO
        other = spoken(client, "plain_en")
        length = min(len(stored), len(other))
        assert np.abs(stored[:length] - other[:length]).max() > 0.01
    finally:
        gone = httpx.delete(f"{server.api}/audio/voices/{made.json()['id']}")
    assert gone.status_code == 200
    assert httpx.get(f"{server.api}/audio/voices").json()["uploaded_voices"] == []


def test_a_chat_answers_in_the_voice_of_a_recording(client: openai.OpenAI) -> None:
    audio: Any = {"format": "flac", "ref_audio": recording()}
    answer = client.chat.completions.create(
        model="ming-omni",
        messages=[{"role": "user", "content": "How many apples?"}],
        modalities=["text", "audio"],
        audio=audio,
        max_tokens=16,
    )
    sound = answer.choices[0].message.audio
    assert sound is not None
    assert soundfile.info(io.BytesIO(base64.b64decode(sound.data))).format == "FLAC"


def test_a_file_that_is_no_recording_is_refused_by_its_field(server: RunningServer) -> None:
    fields = {"name": "Noise", "consent": "yes"}
    files = {"audio_sample": ("a.wav", b"not a sound", "audio/wav")}
    refused = httpx.post(f"{server.api}/audio/voices", data=fields, files=files)
    assert refused.status_code == 400
    assert refused.json()["error"]["param"] == "audio_sample"


def test_manner_and_task_change_what_is_heard(client: openai.OpenAI) -> None:
    plain = spoken(client)
    for more in ({"instructions": "Whisper."}, {"cfg": 4.0}, {"temperature": 2.0}):
        other = spoken(client, **more)
        length = min(len(plain), len(other))
        assert np.abs(plain[:length] - other[:length]).max() > 0.01, more
    assert len(spoken(client, task="sound", max_seconds=1.0)) <= 44_100


def test_a_text_is_spoken_while_it_is_written(server: RunningServer) -> None:
    address = server.api.replace("http", "ws") + "/audio/speech/stream"
    with connect(address) as socket:
        socket.send(json.dumps({"type": "session.config", "seed": 5, "max_seconds": 4.0}))
        for word in LINE.split():
            socket.send(json.dumps({"type": "input.text", "text": f"{word} "}))
        socket.send(json.dumps({"type": "input.done"}))
        audio, kinds = 0, list[str]()
        while not kinds or kinds[-1] not in ("session.done", "error"):
            frame = socket.recv(timeout=60)
            if isinstance(frame, bytes):
                audio += len(frame)
            else:
                kinds.append(json.loads(frame)["type"])
    assert kinds[-1] == "session.done"
    assert kinds[0] == "audio.start"
    assert audio > 24_000
    wait_until(server.is_idle, 5, "everything let go")


def test_a_batch_and_a_transcription(server: RunningServer, client: openai.OpenAI) -> None:
    texts = ("One.", "...", " ")
    items = [{"input": text, "max_seconds": 1.0} for text in texts]
    body = {"model": "ming-omni", "items": items, "response_format": "mp3"}
    made = httpx.post(f"{server.api}/audio/speech/batch", json=body, timeout=60).json()
    assert [result["status"] for result in made["results"]] == ["success", "error", "error"]
    for number in (1, 2):
        assert made["results"][number]["error"]["param"] == f"items.{number}.input"
    with RECORDING.open("rb") as file:
        heard = client.audio.transcriptions.create(
            model="ming-omni", file=file, extra_body={"max_tokens": 16}
        )
    assert isinstance(heard.text, str)
    counted: Any = heard.usage
    assert counted.input_token_details.audio_tokens > 5


@pytest.mark.parametrize("text", ["A" * 300, "x" * 1000, "qwrtpsdfg" * 40])
def test_what_is_no_language_is_spoken_for_seconds_only(client: openai.OpenAI, text: str) -> None:
    """The tiny talker never stops by itself: the limit of the text alone ends it."""
    reply = client.audio.speech.create(
        model="ming-omni",
        input=text,
        response_format="wav",
        voice="DB30",
        extra_body={"seed": 5},
    )
    samples, rate = soundfile.read(io.BytesIO(reply.read()), dtype="float32")
    assert 0.5 < len(samples) / rate < 7.0
    assert np.abs(samples).max() < 0.9
