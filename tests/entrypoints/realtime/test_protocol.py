"""Over a real WebSocket: the official client's types, hostile frames, many connections."""

import asyncio
import base64
import json
import random
import socket
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from typing import Any

import httpx
import openai
import psutil
import pytest
from openai.types.realtime import RealtimeServerEvent
from pydantic import TypeAdapter
from websockets.asyncio.client import ClientConnection, connect
from websockets.exceptions import ConnectionClosed, InvalidStatus

from sglang_omni.config.realtime_options import RealtimeOptions
from sglang_omni.entrypoints.realtime.parsing import EVENT_TYPES
from sglang_omni.pipeline.request import AudioDelta, TranscriptDelta
from tests.entrypoints.http.fake import FakeBackend, Served, hanging, serving, tone
from tests.entrypoints.realtime.sounds import pcm16, silence, voice

# The official client's own description of every event, held to strictly.
SERVER_EVENT: TypeAdapter[Any] = TypeAdapter(RealtimeServerEvent)
FRAME_BYTES = 1 << 20


@pytest.fixture(scope="module")
def running() -> Iterator[Served]:
    FakeBackend.realtime = RealtimeOptions(max_sessions=20, frame_bytes=FRAME_BYTES)
    try:
        with serving() as served:
            yield served
    finally:
        FakeBackend.realtime = RealtimeOptions()


@pytest.fixture
def server(running: Served) -> Served:
    running.backend.reset()
    return running


def dial(server: Served, query: str = "?model=org/ming", **options: Any) -> connect:
    url = f"{server.url.replace('http', 'ws')}/v1/realtime{query}"
    return connect(url, max_size=None, proxy=None, **options)


async def send(connection: ClientConnection, kind: str, **fields: Any) -> None:
    await connection.send(json.dumps({"type": kind, **fields}))


async def until(connection: ClientConnection, kind: str) -> list[dict[str, Any]]:
    """Events up to the first of a type."""
    events: list[dict[str, Any]] = []
    async with asyncio.timeout(10):
        while not events or events[-1]["type"] != kind:
            events.append(json.loads(await connection.recv()))
    return events


async def test_the_official_client_talks_listens_and_interrupts(server: Served) -> None:
    address = f"{server.url.replace('http', 'ws')}/v1"
    client = openai.AsyncOpenAI(websocket_base_url=address, api_key="none")
    sound = base64.b64encode(pcm16(voice(1.0)) + pcm16(silence(0.7))).decode()
    kinds: list[str] = []
    async with client.realtime.connect(model="org/ming") as connection, asyncio.timeout(20):
        await connection.session.update(session={"type": "realtime", "instructions": "Be kind."})
        await connection.input_audio_buffer.append(audio=sound)
        async for event in connection:
            kinds.append(event.type)
            SERVER_EVENT.validate_python(json.loads(event.to_json()), strict=True)
            if event.type == "response.done" and "response.output_audio.delta" in kinds:
                break
        server.backend.script = hanging()
        await connection.response.create()
        await connection.input_audio_buffer.append(audio=sound)
        async for event in connection:
            SERVER_EVENT.validate_python(json.loads(event.to_json()), strict=True)
            if event.type == "response.done":
                assert event.response.status_details is not None
                assert event.response.status_details.reason == "turn_detected"
                break
    order = ["session.updated", "input_audio_buffer.speech_started", "response.created"]
    assert sorted(order, key=kinds.index) == order
    server.backend.wait_running(0)


async def test_the_official_client_has_its_turns_written_down(server: Served) -> None:
    address = f"{server.url.replace('http', 'ws')}/v1"
    client = openai.AsyncOpenAI(websocket_base_url=address, api_key="none")
    sound = base64.b64encode(pcm16(voice(1.0)) + pcm16(silence(0.7))).decode()
    asked = {"intent": "transcription"}
    async with client.realtime.connect(extra_query=asked) as connection, asyncio.timeout(20):
        await connection.input_audio_buffer.append(audio=sound)
        async for event in connection:
            assert event.type != "response.created"
            if event.type == "session.created":
                # The names of OpenAI's models are part of its official type.
                assert event.session.type == "transcription"
            else:
                SERVER_EVENT.validate_python(json.loads(event.to_json()), strict=True)
            if event.type == "conversation.item.input_audio_transcription.completed":
                break
    server.backend.wait_running(0)


async def test_an_unknown_intent_is_refused(server: Served) -> None:
    with pytest.raises(InvalidStatus) as refused:
        async with dial(server, "?intent=translation"):
            pass
    response = refused.value.response
    assert response.status_code == 400
    assert json.loads(response.body)["error"]["param"] == "intent"


async def test_a_model_that_is_not_served_is_a_404_of_the_handshake(server: Served) -> None:
    with pytest.raises(InvalidStatus) as refused:
        async with dial(server, "?model=other"):
            pass
    response = refused.value.response
    assert response.status_code == 404
    assert json.loads(response.body)["error"]["code"] == "model_not_found"


async def test_without_a_handshake_the_route_says_what_it_is(server: Served) -> None:
    async with httpx.AsyncClient(base_url=server.url) as http:
        refused = await http.get("/v1/realtime")
        assert (refused.status_code, refused.json()["error"]["code"]) == (426, "upgrade_required")
        webhooks = (await http.get("/openapi.json")).json()["webhooks"]
    event = webhooks["/v1/realtime: an event of the client"]
    schema = event["post"]["requestBody"]["content"]["application/json"]["schema"]
    assert set(schema["discriminator"]["mapping"]) == EVENT_TYPES


async def test_more_sessions_than_allowed_are_refused_until_one_leaves(server: Served) -> None:
    held = [await dial(server) for _ in range(20)]
    with pytest.raises(InvalidStatus) as refused:
        await dial(server)
    assert refused.value.response.status_code == 429
    assert "Retry-After" in refused.value.response.headers
    await held.pop().close()
    await asyncio.sleep(0.1)
    held.append(await dial(server))
    for connection in held:
        await connection.close()


async def test_the_subprotocol_of_browsers_is_agreed_on(server: Served) -> None:
    offered = ["realtime", "openai-insecure-api-key.none", "openai-beta.realtime-v1"]
    async with dial(server, subprotocols=offered) as connection:
        assert connection.subprotocol == "realtime"
        created = json.loads(await connection.recv())
        # The beta was asked for.
        assert "modalities" in created["session"]
    async with dial(server, additional_headers={"OpenAI-Beta": "realtime=v1"}) as connection:
        assert "modalities" in json.loads(await connection.recv())["session"]


async def test_an_oversized_frame_closes_its_connection_only(server: Served) -> None:
    async with dial(server) as other, dial(server) as connection:
        await connection.send("x" * (FRAME_BYTES + 1))
        with pytest.raises(ConnectionClosed):
            await until(connection, "never")
        assert connection.close_code == 1009
        await send(other, "input_audio_buffer.clear")
        await until(other, "input_audio_buffer.cleared")


async def test_a_binary_frame_is_an_error(server: Served) -> None:
    async with dial(server) as connection:
        await connection.send(b"\x00\x01")
        (*_, error) = await until(connection, "error")
        assert "text frame" in error["error"]["message"]


MALFORMED = [
    ("", "invalid_json", None),
    ("{", "invalid_json", None),
    ("[]", "invalid_json", None),
    ('"session.update"', "invalid_json", None),
    ("[" * 100_000, "invalid_json", None),
    ('{"type": NaN}', "invalid_json", None),
    ("{}", "missing_required_parameter", "type"),
    ('{"type": 5}', "invalid_value", "type"),
    ('{"type": "response.destroy"}', "invalid_value", "type"),
    ('{"type": "input_audio_buffer.append"}', "missing_required_parameter", "audio"),
    ('{"type": "input_audio_buffer.append", "audio": "*"}', "invalid_value", "audio"),
    ('{"type": "input_audio_buffer.append", "audio": "AA=="}', "invalid_value", "audio"),
    ('{"type": "response.cancel", "x": 1}', "unknown_parameter", "x"),
    ('{"type": "session.update", "session": []}', None, "session"),
    (
        '{"type": "session.update", "session": {"tools": [{"type": "mcp"}]}}',
        None,
        "session.tools.0.type",
    ),
    (
        '{"type": "session.update", "session": {"instructions": "\\ud800"}}',
        "invalid_value",
        "session.instructions",
    ),
    (
        '{"type": "conversation.item.create", "item": {"type": "message", "role": "user", '
        '"content": [{"type": "input_text", "text": 5}]}}',
        "invalid_value",
        "item.content.0.text",
    ),
    (
        '{"type": "conversation.item.create", "item": {"type": "message", "role": "user", '
        '"content": [{"type": "output_text", "text": "a"}]}}',
        "invalid_value",
        "item.content.0.type",
    ),
    (
        '{"type": "conversation.item.create", "item": {"type": "mcp_approval_response"}}',
        "invalid_value",
        "item.type",
    ),
    (
        '{"type": "response.create", '
        '"response": {"input": [{"type": "item_reference", "id": "z"}]}}',
        "bad_response_create",
        "response.input.0.id",
    ),
    ('{"type": "output_audio_buffer.clear"}', "invalid_value", "type"),
]


@pytest.mark.parametrize(("frame", "code", "param"), MALFORMED)
async def test_what_is_wrong_is_named_and_the_session_goes_on(
    server: Served, frame: str, code: str | None, param: str | None
) -> None:
    async with dial(server) as connection:
        await connection.send(frame)
        (*_, event) = await until(connection, "error")
        assert event["error"]["param"] == param
        assert code is None or event["error"]["code"] == code
        await send(connection, "input_audio_buffer.clear")
        await until(connection, "input_audio_buffer.cleared")


def random_value(source: random.Random, depth: int = 0) -> Any:
    """Any JSON there may be."""
    kind = source.randrange(7 if depth < 3 else 5)
    if kind == 5:
        return [random_value(source, depth + 1) for _ in range(source.randrange(4))]
    if kind == 6:
        names = ("type", "session", "item", "content", "audio", "id", "role", "text", "input", "x")
        return {source.choice(names): random_value(source, depth + 1) for _ in range(4)}
    words = ("message", "user", "", "AAAA", "audio/pcm", "\u0000", "item_1", "text", "x" * 300)
    return [None, source.random() * 1e9, source.randrange(-5, 5), source.choice(words), True][kind]


async def test_random_events_never_end_a_session(server: Served) -> None:
    source = random.Random(0)
    types = sorted(EVENT_TYPES)
    async with dial(server) as connection:
        for _ in range(1500):
            event = {"type": source.choice(types)}
            for name in ("audio", "session", "item", "response", "item_id", "content_index"):
                if source.random() < 0.4:
                    event[name] = random_value(source)
            await connection.send(json.dumps(event))
            if source.random() < 0.1:
                await connection.send(source.randbytes(20).decode("latin-1"))
        await send(connection, "input_audio_buffer.clear", event_id="last")
        # An error whatever went before: a response may still run, so to cancel one may succeed.
        await send(connection, "conversation.item.delete", item_id="nobody's", event_id="end")
        codes = set()
        async with asyncio.timeout(30):
            while True:
                event = json.loads(await connection.recv())
                if event["type"] == "error":
                    codes.add(event["error"]["code"])
                    if event["error"]["event_id"] == "end":
                        break
    # Whatever was wrong was the client's doing, and was recognised as such.
    assert "internal_error" not in codes
    assert len(codes) >= 4
    server.backend.wait_running(0)


@contextmanager
def unchanged_process() -> Iterator[None]:
    """Neither descriptors nor threads are left behind; the server shares this process."""
    process = psutil.Process()
    before = process.num_fds(), process.num_threads()
    yield
    after = process.num_fds(), process.num_threads()
    # The pool that hears for all sessions may have grown to its size.
    assert after[0] <= before[0] + 2
    assert after[1] <= before[1] + 40


async def live_and_die(server: Served, way: int) -> None:
    """One session that ends in one of five ways, in the middle of something."""
    connection = await dial(server)
    sound = base64.b64encode(pcm16(voice(0.4))).decode()
    await send(connection, "input_audio_buffer.append", audio=sound)
    await send(connection, "response.create")
    match way:
        case 0:
            await connection.close()
        case 1:
            connection.transport.abort()
        case 2:
            await until(connection, "response.created")
            connection.transport.abort()
        case 3:
            # The server may close the connection before all of it is sent.
            with suppress(ConnectionClosed):
                await connection.send("x" * (FRAME_BYTES + 1))
            await connection.wait_closed()
        case 4:
            raw = connection.transport.get_extra_info("socket")
            raw.shutdown(socket.SHUT_WR)
            await asyncio.sleep(0.05)
            connection.transport.abort()


async def test_a_hundred_sessions_open_and_die_and_leave_nothing(server: Served) -> None:
    server.backend.script = hanging()
    await live_and_die(server, 0)
    with unchanged_process():
        for start in range(0, 100, 10):
            batch = (live_and_die(server, way % 5) for way in range(start, start + 10))
            await asyncio.gather(*batch)
            await asyncio.to_thread(server.backend.wait_running, 0, 5)
        await asyncio.sleep(0.2)
    # Every seat is free again.
    held = [await dial(server) for _ in range(20)]
    for connection in held:
        await connection.close()


async def test_a_client_that_does_not_read_holds_no_more_than_its_budget(server: Served) -> None:
    patches = 0

    async def endless(request: Any) -> Any:
        nonlocal patches
        yield TranscriptDelta("on and on")
        while True:
            patches += 1
            yield AudioDelta(0 * tone())
            await asyncio.sleep(0)

    server.backend.script = endless
    async with dial(server, max_queue=1) as connection:
        await send(connection, "response.create")
        await until(connection, "response.output_audio.delta")
        # What fits into the budget and the sockets' buffers, and not one more.
        stuck_at = -1
        async with asyncio.timeout(30):
            while stuck_at != patches:
                stuck_at = patches
                await asyncio.sleep(1.0)
        assert stuck_at < 2000
        async with httpx.AsyncClient(base_url=server.url) as http:
            assert (await http.get("/health")).status_code == 200
        # To close in good order it would have to read.
        connection.transport.abort()
    await asyncio.to_thread(server.backend.wait_running, 0, 5)
