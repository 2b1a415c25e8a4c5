"""`WS /v1/audio/speech/stream`: a text spoken while it is written."""

import json
import time
from collections.abc import Callable, Iterator
from typing import Any

import pytest
from websockets.exceptions import ConnectionClosed
from websockets.sync.client import ClientConnection, connect

from sglang_omni.config.realtime_options import RealtimeOptions
from sglang_omni.models.capabilities import language_names
from tests.entrypoints.http.fake import FakeBackend, Served, tone
from tests.testing.family import CAPABILITIES, RATE

PATCH_BYTES = 2 * round(len(tone()) * 24_000 / RATE)


@pytest.fixture
def talk(server: Served) -> Iterator[ClientConnection]:
    with connect(f"{server.url.replace('http', 'ws')}/v1/audio/speech/stream") as socket:
        yield socket


def send(socket: ClientConnection, kind: str, **fields: Any) -> None:
    socket.send(json.dumps({"type": kind, **fields}))


def receive(socket: ClientConnection, until: str) -> tuple[list[dict[str, Any]], bytes]:
    """Events up to the one of that type, and the audio between them."""
    events: list[dict[str, Any]] = []
    audio = b""
    while not events or events[-1]["type"] != until:
        frame = socket.recv(timeout=5)
        if isinstance(frame, bytes):
            audio += frame
        else:
            events.append(json.loads(frame))
    return events, audio


def test_a_text_is_spoken_while_it_is_written(talk: ClientConnection) -> None:
    send(talk, "session.config", voice="river")
    send(talk, "input.text", text="one ")
    events, audio = receive(talk, "audio.start")
    assert events[0] == {
        "type": "audio.start",
        "index": 0,
        "text": "one ",
        "format": "pcm",
        "sample_rate": 24_000,
    }
    send(talk, "input.text", text="two")
    send(talk, "input.done")
    later, more = receive(talk, "session.done")
    kinds = [event["type"] for event in later]
    assert kinds == ["audio.done", "audio.start", "audio.done", "session.done"]
    assert len(audio + more) == 2 * round(2 * len(tone()) * 24_000 / RATE)
    assert later[-1]["usage"]["output_tokens"] == 4


def test_one_connection_speaks_several_texts(talk: ClientConnection, backend: FakeBackend) -> None:
    send(talk, "session.config", seed=3)
    for _ in range(2):
        send(talk, "input.text", text="one")
        send(talk, "input.done")
        receive(talk, "session.done")
    assert [request.voice.seed for request in backend.requests] == [3, 3]
    assert len({request.id for request in backend.requests}) == 2
    send(talk, "session.close")
    with pytest.raises(ConnectionClosed) as closed:
        talk.recv(timeout=5)
    assert closed.value.rcvd is not None
    assert closed.value.rcvd.code == 1000


def test_closing_in_the_middle_stops_speaking(talk: ClientConnection, backend: FakeBackend) -> None:
    send(talk, "session.config")
    send(talk, "input.text", text="one")
    receive(talk, "audio.start")
    send(talk, "session.close")
    with pytest.raises(ConnectionClosed):
        while True:
            talk.recv(timeout=5)


Spoil = Callable[[ClientConnection], None]


@pytest.mark.parametrize(
    ("spoil", "param"),
    [
        (lambda s: send(s, "input.text", text="a"), "type"),
        (lambda s: send(s, "session.config", voice="sea"), "voice"),
        (lambda s: send(s, "session.config", speed=9), "speed"),
        (lambda s: send(s, "session.config", model="o3"), "model"),
        (lambda s: send(s, "session.config", task="sound"), "task"),
        (lambda s: send(s, "session.configure"), "type"),
        (lambda s: s.send("nonsense"), None),
        (lambda s: s.send(b"bytes"), None),
    ],
)
def test_what_is_wrong_is_said_and_ends_the_session(
    talk: ClientConnection, spoil: Spoil, param: str | None
) -> None:
    spoil(talk)
    events, _ = receive(talk, "error")
    assert events[-1]["error"]["type"] == "invalid_request_error"
    assert events[-1]["error"]["param"] == param
    with pytest.raises(ConnectionClosed):
        talk.recv(timeout=5)


def test_an_idle_session_is_closed(
    server: Served, backend: FakeBackend, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(type(backend), "realtime", RealtimeOptions(idle_seconds=0.05))
    with connect(f"{server.url.replace('http', 'ws')}/v1/audio/speech/stream") as socket:
        send(socket, "session.config")
        events, _ = receive(socket, "error")
        assert events[-1]["error"]["code"] == "session_expired"


def test_a_text_in_another_script_is_refused(talk: ClientConnection) -> None:
    send(talk, "session.config")
    send(talk, "input.text", text="one ")
    receive(talk, "audio.start")
    send(talk, "input.text", text="Привет")
    (*_, refused), _ = receive(talk, "error")
    assert refused["error"]["param"] == "text"
    spoken = language_names(CAPABILITIES.speech_languages)
    assert f"speaks {spoken}; it cannot read Привет" in refused["error"]["message"]


def test_a_time_limit_counts_from_each_text_not_from_the_handshake(
    talk: ClientConnection, backend: FakeBackend
) -> None:
    send(talk, "session.config", timeout=0.5)
    time.sleep(0.6)
    send(talk, "input.text", text="late")
    send(talk, "input.done")
    receive(talk, "session.done")
    assert backend.requests[-1].timeout_s == 0.5
