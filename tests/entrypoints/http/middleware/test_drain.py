"""Draining: nothing new is begun, what has begun ends, and the server can be watched meanwhile."""

import asyncio
import threading

import httpx
import pytest

from sglang_omni.entrypoints.http.middleware.drain import DrainMiddleware, InFlight
from sglang_omni.pipeline.request import Finished, TextDelta, Usage
from tests.entrypoints.http.fake import FakeBackend, playing

CHAT = {"model": "org/ming", "messages": [{"role": "user", "content": "hello"}]}


def test_new_work_is_refused_and_its_connection_closed(
    http: httpx.Client, backend: FakeBackend
) -> None:
    backend.draining.set()
    reply = http.post("/v1/chat/completions", json=CHAT)
    assert reply.status_code == 503
    assert reply.json()["error"]["code"] == "draining"
    assert reply.headers["connection"] == "close"
    assert reply.headers["retry-after"] == "1"
    assert backend.requests == []


@pytest.mark.parametrize("path", ["/health", "/ready", "/docs", "/openapi.json"])
def test_the_server_is_watched_while_it_drains(
    http: httpx.Client, backend: FakeBackend, path: str
) -> None:
    backend.draining.set()
    assert http.get(path).json if path == "/docs" else http.get(path).json()


def test_what_has_begun_goes_on(http: httpx.Client, backend: FakeBackend) -> None:
    words = [TextDelta(f"{number} ") for number in range(10)]
    backend.script = playing(*words, Finished("stop", Usage()), pause=0.05)
    replies: list[httpx.Response] = []
    asking = threading.Thread(
        target=lambda: replies.append(http.post("/v1/chat/completions", json=CHAT))
    )
    asking.start()
    backend.wait_running(1)
    backend.draining.set()
    asking.join()
    assert replies[0].status_code == 200
    assert replies[0].json()["choices"][0]["message"]["content"].endswith("9 ")


async def test_in_flight_is_idle_when_the_last_one_leaves() -> None:
    in_flight = InFlight()
    await asyncio.wait_for(in_flight.wait_idle(), 1)
    with in_flight:
        with in_flight:
            assert in_flight.count == 2
        waiting = asyncio.create_task(in_flight.wait_idle())
        await asyncio.sleep(0)
        assert not waiting.done()
    await asyncio.wait_for(waiting, 1)


async def test_a_websocket_is_refused_with_a_status_or_else_a_close_code() -> None:
    async def app(*_: object) -> None:
        raise AssertionError("nothing new is begun")

    draining = asyncio.Event()
    draining.set()
    layer = DrainMiddleware(app, draining, InFlight())
    denial: dict[str, object] = {"websocket.http.response": {}}
    for extensions, kind in ((denial, "websocket.http.response.start"), ({}, "websocket.close")):
        sent: list[dict[str, object]] = []

        async def send(message: dict[str, object], sent: list[dict[str, object]] = sent) -> None:
            sent.append(message)

        scope = {"type": "websocket", "path": "/v1/realtime", "extensions": extensions}
        await layer(scope, None, send)  # type: ignore[arg-type]
        assert sent[0]["type"] == kind
        assert sent[0].get("status", 503) == 503
        assert sent[0].get("code", 1013) == 1013
