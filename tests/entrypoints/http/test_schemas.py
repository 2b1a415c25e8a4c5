"""JSON schemas that no answer can be held to are a 400 by their field, before anything is asked."""

import json
from typing import Any

import httpx
import pytest
from websockets.sync.client import connect

from tests.entrypoints.http.fake import FakeBackend, Served

HELLO = [{"role": "user", "content": "hello"}]
ITSELF = {"$ref": "#"}
ENDLESS = {"type": "object", "properties": {"a": {"type": "array", "minItems": 10**9}}}


def formed(schema: dict[str, Any]) -> dict[str, Any]:
    named = {"name": "answer", "schema": schema}
    return {"response_format": {"type": "json_schema", "json_schema": named}}


def offered(schema: dict[str, Any]) -> dict[str, Any]:
    return {"tools": [{"type": "function", "function": {"name": "look", "parameters": schema}}]}


@pytest.mark.parametrize("schema", [ITSELF, ENDLESS], ids=["itself", "endless"])
@pytest.mark.parametrize(
    ("place", "param"),
    [
        (formed, "response_format.json_schema.schema"),
        (offered, "tools.0.function.parameters"),
    ],
)
@pytest.mark.parametrize("stream", [False, True])
def test_a_chat_names_the_field(
    http: httpx.Client, backend: FakeBackend, place: Any, param: str, schema: Any, stream: bool
) -> None:
    body = {"model": "org/ming", "messages": HELLO, "stream": stream, **place(schema)}
    reply = http.post("/v1/chat/completions", json=body)
    assert reply.status_code == 400, reply.text
    assert reply.json()["error"]["param"] == param
    assert backend.requests == []


def test_a_realtime_session_names_the_field_and_goes_on(server: Served) -> None:
    tool = {"type": "function", "name": "look", "parameters": ITSELF}
    update = {"type": "session.update", "event_id": "mine", "session": {"tools": [tool]}}
    with connect(server.url.replace("http", "ws") + "/v1/realtime") as socket:
        socket.send(json.dumps(update))
        while (event := json.loads(socket.recv(timeout=5)))["type"] != "error":
            pass
        error = event["error"]
        assert (error["event_id"], error["param"]) == ("mine", "session.tools.0.parameters")
        socket.send('{"type": "session.update", "session": {"type": "realtime"}}')
        assert json.loads(socket.recv(timeout=5))["type"] == "session.updated"
