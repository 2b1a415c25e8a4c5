"""A whole server whose talker, encoders and decoders are on the other machine.

What it says and hears is that of a server on one machine, bit for bit.
"""

import signal
import time
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import httpx
import pytest

from sglang_omni.engines.remote.contract import TlsFiles
from sglang_omni.models.ming.tiny import write_tiny_checkpoint
from tests.cluster.hosts import NETWORK, Machines, engines_of, find, kill_all
from tests.faults.test_engines import ask, picture
from tests.server.running import HTTP, RunningServer, call, run_server, wait_until
from tests.server.test_speech_api import RECORDING, WORDS, recording
from tests.testing.machine import PATIENCE

COMMAND = ("-m", "sglang_omni", "serve", "--version", "v1", "--model-path")
REMOTE = ("talker", "encoders", "media_decoder-1", "image")
DRAWN = {"prompt": "a red circle", "size": "1024x256", "resolution": 512, "steps": 4, "seed": 3}
PICTURE = picture(448)
TOLD_S, RECOVERY_S = 15.0, 60.0 * PATIENCE
SLOT_FREE_S = 1.0 * PATIENCE


@pytest.fixture(scope="module")
def checkpoint(tmp_path_factory: pytest.TempPathFactory) -> str:
    """A tiny model that also draws."""
    folder = tmp_path_factory.mktemp("models") / "tiny"
    write_tiny_checkpoint(folder)
    return str(folder)


@dataclass(frozen=True)
class Answers:
    """What a server says, hears, sees and draws."""

    spoken: bytes
    cloned: bytes
    seen: Any
    heard: Any
    drawn: str


@pytest.fixture(scope="module")
def expected(checkpoint: str, tmp_path_factory: pytest.TempPathFactory) -> Answers:
    """The answers of a server on one machine, which has ended by then."""
    voices = str(tmp_path_factory.mktemp("voices"))
    with run_server(*COMMAND, checkpoint, "--voices-dir", voices, ready="/ready") as server:
        return ask_all(server)


@pytest.fixture(scope="module")
def far(
    machines: Machines,
    tls: TlsFiles,
    checkpoint: str,
    expected: Answers,
    tmp_path_factory: pytest.TempPathFactory,
) -> Iterator[RunningServer]:
    """The server with engines on the other machine."""
    options = {
        "cluster.ray_address": machines.address,
        "cluster.bind": NETWORK,
        "cluster.tls_ca": tls.ca,
        "cluster.tls_certificate": tls.certificate,
        "cluster.tls_key": tls.key,
        "talker.place": "node-b",
        "image_encoder.place": "node-b",
        "image.place": "node-b",
        "image.min_replicas": 1,
        "media.place": "local,node-b",
        "voices-dir": tmp_path_factory.mktemp("voices"),
    }
    arguments = [part for name, value in options.items() for part in (f"--{name}", str(value))]
    with run_server(*COMMAND, checkpoint, *arguments, ready="/ready") as server:
        yield server
    assert engines_of(machines.link) == []


def speech(server: RunningServer, **fields: Any) -> bytes:
    body: dict[str, Any] = {
        "model": "ming-omni",
        "input": "The train leaves at seven.",
        "seed": 7,
    }
    body |= {"response_format": "pcm", **fields}
    reply = httpx.post(f"{server.api}/audio/speech", json=body, timeout=120)
    assert reply.status_code == 200, reply.text
    return reply.content


def answer(server: RunningServer, content: list[dict[str, Any]]) -> Any:
    """Return the tokens of an answer and their log probabilities, which tell features apart."""
    body: dict[str, Any] = {
        "model": "ming-omni",
        "messages": [{"role": "user", "content": content}],
    }
    body |= {"max_tokens": 12, "temperature": 0, "logprobs": True, "top_logprobs": 3}
    reply = httpx.post(f"{server.api}/chat/completions", json=body, timeout=120)
    assert reply.status_code == 200, reply.text
    return reply.json()["choices"][0]["logprobs"]["content"]


def draw(server: RunningServer) -> str:
    reply = httpx.post(f"{server.api}/images/generations", json=DRAWN, timeout=120)
    assert reply.status_code == 200, reply.text
    return str(reply.json()["data"][0]["b64_json"])


def clone(server: RunningServer) -> bytes:
    """Store a voice, and return what it says."""
    files = {"audio_sample": ("me.wav", RECORDING.read_bytes(), "audio/wav")}
    fields = {"name": "Mine", "consent": "I am the speaker", "ref_text": WORDS["prompt_text"]}
    made = httpx.post(f"{server.api}/audio/voices", data=fields, files=files, timeout=120)
    assert made.status_code == 201, made.text
    return speech(server, voice="Mine")


def ask_all(server: RunningServer) -> Answers:
    shown: dict[str, Any] = {"type": "image_url", "image_url": {"url": PICTURE}}
    sound = {"data": recording().partition(",")[2], "format": "wav"}
    heard: dict[str, Any] = {"type": "input_audio", "input_audio": sound}
    question: dict[str, Any] = {"type": "text", "text": "What is this?"}
    return Answers(
        spoken=speech(server),
        cloned=clone(server),
        seen=answer(server, [shown, question]),
        heard=answer(server, [heard, question]),
        drawn=draw(server),
    )


def test_engines_run_where_they_were_placed(far: RunningServer, machines: Machines) -> None:
    engines = HTTP.get(f"{far.url}/health").json()["engines"]
    assert {name for name, one in engines.items() if one["node"] == "node-b"} == set(REMOTE)
    assert len(find(machines.link, "ray::EngineHost")) == len(REMOTE)


def test_its_answers_are_those_of_one_machine(far: RunningServer, expected: Answers) -> None:
    answers = ask_all(far)
    assert len(expected.spoken) > 10_000
    for name, value in vars(expected).items():
        assert getattr(answers, name) == value, name


def test_a_client_that_leaves_frees_its_slot(far: RunningServer) -> None:
    def active() -> float:
        return float(far.engine("talker")["counters"]["active_slots"])

    path, body = ask("speech")
    url = f"{far.api}/{path}"
    with httpx.stream("POST", url, json={**body, "stream_format": "sse"}, timeout=60) as reply:
        for _ in reply.iter_lines():
            if active() == 1:
                break
        assert active() == 1
    # Counters are up to a second old.
    wait_until(lambda: active() == 0, 1.0 + SLOT_FREE_S, "the slot is free")


@pytest.mark.parametrize("fault", ["engine", "hang", "node", "link"])
def test_a_fault_there_is_told_and_ends(far: RunningServer, machines: Machines, fault: str) -> None:
    path, body = ask("speech")
    lost, reader = call(f"{far.api}/{path}", {**body, "stream_format": "sse"})
    wait_until(lambda: lost.started, 60, "it speaks")
    failed_at = time.monotonic()
    match fault:
        case "engine":
            kill_all(engines_of(machines.link))
        case "hang":
            for process in engines_of(machines.link):
                process.send_signal(signal.SIGSTOP)
        case "node":
            machines.worker.kill()
        case "link":
            machines.link.cut()
    reader.join(TOLD_S + 5)
    told_s = lost.ended_at - failed_at
    assert lost.failed_visibly
    assert told_s < TOLD_S
    # The thinker is here, so text goes on.
    path, body = ask("text", tokens=3)
    assert httpx.post(f"{far.api}/{path}", json=body, timeout=60).status_code == 200
    if fault == "link":
        machines.link.restore()
    restored_at = time.monotonic()
    wait_until(lambda: far.ready_status() == 200, RECOVERY_S, "ready again")
    assert len(speech(far)) > 10_000
    print(f"{fault}: told after {told_s:.1f} s, ", end="")
    print(f"speaks again after {time.monotonic() - restored_at:.1f} s")
