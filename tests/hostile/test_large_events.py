"""Large events of WebSockets: read and refused while nobody else waits, not even their client."""

import asyncio
import base64
import json
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager
from typing import Any

import pytest
from websockets.asyncio.client import ClientConnection, connect
from websockets.exceptions import ConnectionClosed

from sglang_omni.config.realtime_options import RealtimeOptions
from sglang_omni.entrypoints.http.transport import websocket_protocol as websocket
from tests.entrypoints.http.fake import FakeBackend, serving
from tests.hostile.clients import bystander
from tests.hostile.process import MIB, Process, server_process

# Waits are judged.
pytestmark = pytest.mark.alone


@pytest.fixture(scope="module")
def process() -> Iterator[Process]:
    with server_process() as running:
        yield running


@asynccontextmanager
async def dial(process: Process, path: str = "/v1/realtime") -> AsyncIterator[ClientConnection]:
    url = process.served.url.replace("http", "ws") + path
    async with connect(url, max_size=None, compression=None, ping_interval=None) as connection:
        yield connection


async def until(connection: ClientConnection, kind: str) -> dict[str, Any]:
    async with asyncio.timeout(30):
        while (event := json.loads(await connection.recv()))["type"] != kind:
            pass
    found: dict[str, Any] = event
    return found


def item(*parts: dict[str, Any]) -> dict[str, Any]:
    message = {"type": "message", "role": "user", "content": list(parts)}
    return {"type": "conversation.item.create", "item": message}


TEXT = "hello there " * (20 * MIB // 12)
REFUSED: dict[str, tuple[str, str, str | None]] = {
    "instructions": (
        json.dumps({"type": "session.update", "session": {"instructions": TEXT}}),
        "context_length_exceeded",
        "session.instructions",
    ),
    "an item": (
        json.dumps(item({"type": "input_text", "text": TEXT})),
        "context_length_exceeded",
        "item.content.0.text",
    ),
    "parts": (
        json.dumps(item(*[{"type": "input_text", "text": "a"}] * 10_000)),
        "invalid_value",
        "item.content",
    ),
    "empty lists": ("[" + "[]," * (20 * MIB // 3) + "[]]", "invalid_value", None),
    "sound that is none": (
        json.dumps({"type": "input_audio_buffer.append", "audio": "A" * 19 * MIB + "=="}),
        "invalid_value",
        "audio",
    ),
}


@pytest.mark.parametrize("name", REFUSED)
async def test_a_large_event_is_refused_and_the_session_goes_on(
    process: Process, name: str
) -> None:
    frame, code, param = REFUSED[name]
    with bystander(process.served):
        async with dial(process) as connection:
            await connection.send(frame)
            error = (await until(connection, "error"))["error"]
            await connection.send(json.dumps(item({"type": "input_text", "text": "a"})))
            await until(connection, "conversation.item.done")
    assert (error["code"], error["param"]) == (code, param)


async def test_a_client_far_ahead_still_has_its_pings_answered(process: Process) -> None:
    """Minutes of sound at once: to look through them takes longer than a ping may."""
    second = base64.b64encode(b"\0" * 48_000).decode()
    frame = json.dumps({"type": "input_audio_buffer.append", "audio": second})
    with bystander(process.served):
        async with dial(process) as connection:
            for _ in range(55):
                await connection.send(frame)
            async with asyncio.timeout(0.5):
                await (await connection.ping())


async def test_text_to_speak_beyond_its_bound_ends_its_session_alone(process: Process) -> None:
    with bystander(process.served):
        async with dial(process, "/v1/audio/speech/stream") as connection:
            await connection.send('{"type": "session.config"}')
            await connection.send(json.dumps({"type": "input.text", "text": TEXT}))
            assert (await until(connection, "error"))["error"]["param"] == "text"


async def test_a_client_that_only_sends_is_closed(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(FakeBackend, "realtime", RealtimeOptions(stall_seconds=1.0))
    monkeypatch.setattr(websocket, "CLOSE_TIMEOUT_S", 1.0)
    frame = json.dumps({"type": "session.update", "session": {"type": "realtime"}})
    with serving() as served:
        url = served.url.replace("http", "ws") + "/v1/realtime"
        async with connect(url, max_queue=1, compression=None, ping_interval=None) as connection:
            # Neither side reads on: what it sends stays in the buffers of both.
            async with asyncio.timeout(15):
                with pytest.raises(ConnectionClosed):
                    while True:
                        await connection.send(frame)
