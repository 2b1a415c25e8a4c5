"""What a caller does on each kind of route, through whatever stands before the servers."""

import base64
import json
import time
from typing import Any

import httpx
from websockets.sync.client import ClientConnection, connect

from sglang_omni.entrypoints.startup.checkpoint import MING_MINI

MODEL = "ming-omni"
VOICES = MING_MINI / "talker" / "data" / "voices"
QUESTION = [{"role": "user", "content": "What is 17 + 25?"}]
ANSWER = "17 + 25 = 42. The answer is 42."
ANSWER_S = 120
Headers = dict[str, str]


def post(
    url: str, path: str, body: dict[str, Any], headers: Headers | None = None
) -> httpx.Response:
    """Send JSON that must be answered with 200."""
    reply = httpx.post(f"{url}{path}", json=body, headers=headers, timeout=ANSWER_S)
    assert reply.status_code == 200, (path, reply.status_code, reply.text)
    return reply


def check_chat(url: str) -> None:
    """Ask in writing, and read a written answer."""
    body = {"model": MODEL, "messages": QUESTION, "temperature": 0}
    reply = post(url, "/v1/chat/completions", body).json()
    assert reply["choices"][0]["message"]["content"] == ANSWER


def check_spoken_chat(url: str) -> None:
    """Read a spoken answer in events, the first of which comes long before the last."""
    body = {
        "model": MODEL,
        "messages": [{"role": "user", "content": "Count from 1 to 9."}],
        "stream": True,
        "modalities": ["text", "audio"],
    }
    arrived, audio, last = list[float](), 0, ""
    started_at = time.monotonic()
    with httpx.stream("POST", f"{url}/v1/chat/completions", json=body, timeout=ANSWER_S) as reply:
        assert reply.headers["content-type"].startswith("text/event-stream")
        for line in reply.iter_lines():
            if line.startswith("data: "):
                arrived.append(time.monotonic() - started_at)
                last = line.removeprefix("data: ")
                audio += '"audio"' in last
    assert last == "[DONE]"
    assert audio > 1
    assert arrived[0] < arrived[-1] / 2


def check_speech(url: str) -> None:
    """Have a text spoken, as a file and in events."""
    body = {"model": MODEL, "input": "The mill stands by the river.", "seed": 1}
    reply = post(url, "/v1/audio/speech", {**body, "response_format": "wav"})
    assert reply.content[:4] == b"RIFF"
    assert len(reply.content) > 24_000
    events = post(url, "/v1/audio/speech", {**body, "stream_format": "sse"}).text
    assert events.count("speech.audio.delta") > 1
    assert events.count("speech.audio.done") == 1


def check_transcription(url: str) -> None:
    """Upload a recording, and read its words."""
    voice = sorted(VOICES.glob("*.flac"))[0]
    reply = httpx.post(
        f"{url}/v1/audio/transcriptions",
        files={"file": (voice.name, voice.read_bytes())},
        data={"model": MODEL},
        timeout=ANSWER_S,
    )
    assert reply.status_code == 200, reply.text
    assert len(reply.json()["text"].split()) > 2


def read_until(socket: ClientConnection, *kinds: str) -> list[dict[str, Any]]:
    """Read events up to one of these kinds."""
    events = list[dict[str, Any]]()
    while not events or events[-1]["type"] not in kinds:
        frame = socket.recv(timeout=ANSWER_S)
        if isinstance(frame, str):
            events.append(json.loads(frame))
    return events


def open_realtime(url: str, headers: Headers | None = None) -> ClientConnection:
    """Open a realtime session."""
    address = url.replace("http", "ws", 1) + f"/v1/realtime?model={MODEL}"
    return connect(address, max_size=None, additional_headers=headers)


def ask_realtime(socket: ClientConnection, text: str) -> None:
    """Ask in a realtime session for an answer in speech."""
    content = [{"type": "input_text", "text": text}]
    item = {"type": "message", "role": "user", "content": content}
    socket.send(json.dumps({"type": "conversation.item.create", "item": item}))
    socket.send(json.dumps({"type": "response.create"}))


def check_realtime(url: str, headers: Headers | None = None) -> None:
    """Ask in a realtime session, and hear the answer."""
    with open_realtime(url, headers) as socket:
        ask_realtime(socket, "What is 17 + 25?")
        events = read_until(socket, "response.done", "error")
    assert events[0]["type"] == "session.created"
    assert events[-1]["type"] == "response.done"
    sounds = [one["delta"] for one in events if one["type"] == "response.output_audio.delta"]
    assert sum(len(base64.b64decode(one)) for one in sounds) > 24_000


def check_speech_stream(url: str) -> None:
    """Have a text spoken while it is written, over a WebSocket."""
    address = url.replace("http", "ws", 1) + "/v1/audio/speech/stream"
    kinds, audio = list[str](), 0
    with connect(address) as socket:
        socket.send(json.dumps({"type": "session.config", "seed": 5, "max_seconds": 4.0}))
        socket.send(json.dumps({"type": "input.text", "text": "The mill stands by the river."}))
        socket.send(json.dumps({"type": "input.done"}))
        while not kinds or kinds[-1] not in ("session.done", "error"):
            frame = socket.recv(timeout=ANSWER_S)
            if isinstance(frame, bytes):
                audio += len(frame)
            else:
                kinds.append(json.loads(frame)["type"])
    assert (kinds[0], kinds[-1]) == ("audio.start", "session.done")
    assert audio > 24_000


def check_page(url: str) -> None:
    """Load the page and a file of it."""
    page = httpx.get(f"{url}/")
    assert "<html" in page.text
    script = page.text.split('src="')[1].split('"')[0]
    assert httpx.get(httpx.URL(f"{url}/").join(script)).status_code == 200


def store_voice(url: str, name: str, headers: Headers | None = None) -> str:
    """Store a voice. Return its id."""
    recording = sorted(VOICES.glob("*.flac"))[0]
    reply = httpx.post(
        f"{url}/v1/audio/voices",
        data={"name": name, "consent": "I am the speaker", "ref_text": "Hello."},
        files={"audio_sample": (recording.name, recording.read_bytes(), "audio/flac")},
        headers=headers,
        timeout=ANSWER_S,
    )
    assert reply.status_code == 201, reply.text
    made: str = reply.json()["id"]
    return made


def check_private(url: str) -> None:
    """Ask for what is not for the internet, in several spellings."""
    paths = ("/metrics", "/%6detrics", "/admin/reload", "/%61dmin/reload", "/metrics?a=1")
    statuses = {path: httpx.post(f"{url}{path}").status_code for path in paths}
    assert statuses == dict.fromkeys(paths, 403)
