"""A model family of another package, found by its entry point, served as any other."""

import base64
import io
from collections.abc import Iterator
from pathlib import Path

import httpx
import numpy as np
import pytest
import soundfile

from tests.media.files import encoded, picture, tone, wav
from tests.server.running import RunningServer, run_server
from tests.testing import toy_family
from tests.testing.toy_checkpoint import install_entry_point, write_toy_checkpoint

ROOT = Path(__file__).parents[2]
MODEL = "toy"


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[RunningServer]:
    folder = tmp_path_factory.mktemp("toy")
    checkpoint = write_toy_checkpoint(folder / "checkpoint")
    path = f"{ROOT}:{install_entry_point(folder / 'packages')}"
    command = ("-m", "sglang_omni", "serve", "--version", "v1", "--model-path", str(checkpoint))
    options = ("--device", "cpu", "--served-model-name", MODEL)
    with run_server(*command, *options, ready="/ready", env={"PYTHONPATH": path}) as running:
        yield running


def chat(server: RunningServer, content: object, **fields: object) -> dict[str, object]:
    body = {"model": MODEL, "messages": [{"role": "user", "content": content}], **fields}
    reply = httpx.post(f"{server.url}/v1/chat/completions", json=body, timeout=30)
    assert reply.status_code == 200, reply.text
    choice: dict[str, object] = reply.json()["choices"][0]["message"]
    return choice


def pitch_of(wav: bytes) -> float:
    samples, rate = soundfile.read(io.BytesIO(wav))
    return float(np.abs(np.fft.rfft(samples)).argmax() * rate / len(samples))


def test_it_is_small_enough_to_copy() -> None:
    assert len(Path(toy_family.__file__).read_text(encoding="utf-8").splitlines()) <= 200


def test_its_capabilities_are_listed(server: RunningServer) -> None:
    model = httpx.get(f"{server.url}/v1/models").json()["data"][0]
    assert model["id"] == MODEL
    assert model["capabilities"]["name"] == "Toy"


def test_it_answers_with_what_it_was_told(server: RunningServer) -> None:
    assert chat(server, "Hello, toy!")["content"] == "Hello, toy!"
    assert chat(server, "Hello, toy!", max_tokens=5)["content"] == "Hello"


def test_it_takes_pictures_and_sound(server: RunningServer) -> None:
    image = base64.b64encode(encoded(picture())).decode()
    sound = base64.b64encode(wav(tone(0.5))).decode()
    content = [
        {"type": "text", "text": "Seen."},
        {"type": "image_url", "image_url": {"url": f"data:image/png;base64,{image}"}},
        {"type": "input_audio", "input_audio": {"data": sound, "format": "wav"}},
    ]
    assert chat(server, content)["content"] == "Seen."


@pytest.mark.parametrize(("voice", "pitch"), [("low", 220.0), ("high", 440.0)])
def test_its_voices_speak_at_its_own_rate(server: RunningServer, voice: str, pitch: float) -> None:
    body = {"model": MODEL, "input": "Good morning.", "voice": voice}
    reply = httpx.post(f"{server.url}/v1/audio/speech", json=body, timeout=30)
    assert reply.status_code == 200, reply.text
    assert soundfile.info(io.BytesIO(reply.content)).samplerate == 16_000
    assert pitch_of(reply.content) == pytest.approx(pitch, abs=5)


def test_a_recording_becomes_a_voice(server: RunningServer) -> None:
    recording = f"data:audio/wav;base64,{base64.b64encode(wav(tone(2.0), 24_000)).decode()}"
    body = {"model": MODEL, "input": "Good morning.", "ref_audio": recording}
    reply = httpx.post(f"{server.url}/v1/audio/speech", json=body, timeout=30)
    assert reply.status_code == 200, reply.text
    assert pitch_of(reply.content) == pytest.approx(330, abs=5)


def test_its_instructions_raise_the_pitch(server: RunningServer) -> None:
    body = {"model": MODEL, "input": "Good morning.", "voice": "low", "instructions": "Higher."}
    reply = httpx.post(f"{server.url}/v1/audio/speech", json=body, timeout=30)
    assert pitch_of(reply.content) == pytest.approx(440, abs=5)


def test_what_it_cannot_do_is_refused_by_its_name(server: RunningServer) -> None:
    body = {"model": MODEL, "input": "Привет"}
    reply = httpx.post(f"{server.url}/v1/audio/speech", json=body, timeout=30)
    assert reply.status_code == 400
    assert "Toy" in reply.json()["error"]["message"]
