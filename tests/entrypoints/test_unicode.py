"""One half of a surrogate pair, which JSON can spell, is a 400 on every route, by its field."""

import json
from typing import Any

import httpx
import pytest
from websockets.sync.client import connect

from tests.entrypoints.http.fake import FakeBackend, Served

HALF = "\ud800"
JSON_TYPE = {"content-type": "application/json"}
USER = {"role": "user", "content": "hello"}
CHAT: dict[str, Any] = {"model": "org/ming", "messages": [USER]}


def function(**fields: Any) -> dict[str, Any]:
    return {"tools": [{"type": "function", "function": {"name": "look", **fields}}]}


def schema(inside: dict[str, Any]) -> dict[str, Any]:
    named = {"name": "place", "schema": inside}
    return {"response_format": {"type": "json_schema", "json_schema": named}}


CHATS: list[tuple[dict[str, Any], str | None]] = [
    ({"messages": [{"role": "user", "content": f"a{HALF}"}]}, "messages.0.content"),
    ({"messages": [{"role": "system", "content": "\udfff"}, USER]}, "messages.0.content"),
    (
        {"messages": [{"role": "user", "content": [{"type": "text", "text": HALF}]}]},
        "messages.0.content.0.text",
    ),
    (function(description=HALF), "tools.0.function.description"),
    (function(name=HALF), "tools.0.function.name"),
    (
        function(parameters={"type": "object", "properties": {HALF: {}}}),
        "tools.0.function.parameters.properties",
    ),
    (
        function(parameters={"type": "object", "description": HALF}),
        "tools.0.function.parameters.description",
    ),
    (
        schema({"type": "object", "title": HALF}),
        "response_format.json_schema.schema.title",
    ),
    ({"stop": ["a", HALF]}, "stop.1"),
    ({"user": HALF}, "user"),
    ({"model": HALF}, "model"),
    ({HALF: 1}, None),
]


@pytest.mark.parametrize(("fields", "param"), CHATS, ids=[str(param) for _, param in CHATS])
@pytest.mark.parametrize("stream", [False, True])
def test_a_chat_names_the_field(
    http: httpx.Client, fields: dict[str, Any], param: str | None, stream: bool
) -> None:
    content = json.dumps({**CHAT, "stream": stream, **fields})
    reply = http.post("/v1/chat/completions", content=content, headers=JSON_TYPE)
    assert reply.status_code == 400, reply.text
    error = reply.json()["error"]
    assert error["param"] == param
    assert "surrogate" in error["message"]


@pytest.mark.parametrize(
    ("path", "body", "param"),
    [
        ("speech", {"input": HALF}, "input"),
        ("speech", {"input": "a", "instructions": HALF}, "instructions"),
        ("speech", {"input": "a", "voice": HALF}, "voice"),
        ("speech/batch", {"items": [{"input": "a"}, {"input": HALF}]}, "items.1.input"),
    ],
)
def test_speech_names_the_field(http: httpx.Client, path: str, body: Any, param: str) -> None:
    content = json.dumps({"model": "org/ming", **body})
    reply = http.post(f"/v1/audio/{path}", content=content, headers=JSON_TYPE)
    assert (reply.status_code, reply.json()["error"]["param"]) == (400, param)


@pytest.mark.parametrize(
    ("path", "file", "fields", "param"),
    [
        ("transcriptions", "file", {"model": "org/ming", "prompt": "+2AA-"}, "prompt"),
        ("voices", "audio_sample", {"name": "+2AA-", "consent": "yes"}, "name"),
    ],
)
def test_a_form_in_an_encoding_that_can_spell_it_names_the_field(
    http: httpx.Client, path: str, file: str, fields: dict[str, str], param: str
) -> None:
    parts = [
        f'Content-Disposition: form-data; name="{name}"\r\n\r\n{fields[name]}' for name in fields
    ]
    parts.append(f'Content-Disposition: form-data; name="{file}"; filename="a.wav"\r\n\r\nRIFF')
    content = "".join(f"--edge\r\n{part}\r\n" for part in parts) + "--edge--\r\n"
    headers = {"content-type": "multipart/form-data; boundary=edge; charset=utf-7"}
    reply = http.post(f"/v1/audio/{path}", content=content, headers=headers)
    assert reply.status_code == 400, reply.text
    error = reply.json()["error"]
    assert error["param"] == param
    assert "surrogate" in error["message"]


def test_a_whole_pair_and_an_escaped_backslash_are_text(
    http: httpx.Client, backend: FakeBackend
) -> None:
    content = json.dumps({**CHAT, "messages": [{"role": "user", "content": "\U0001f600 \\ud800"}]})
    reply = http.post("/v1/chat/completions", content=content, headers=JSON_TYPE)
    assert reply.status_code == 200
    assert reply.json()["choices"][0]["message"]["content"] == "\U0001f600 \\ud800 "


def test_a_speech_stream_names_the_field(server: Served) -> None:
    with connect(server.url.replace("http", "ws") + "/v1/audio/speech/stream") as socket:
        socket.send('{"type": "session.config"}')
        socket.send(rb'{"type": "input.text", "text": "\ud800"}'.decode())
        error = json.loads(socket.recv(timeout=5))["error"]
    assert error["param"] == "text"
    assert "surrogate" in error["message"]


ITEM = {"type": "message", "role": "user", "content": [{"type": "input_text", "text": HALF}]}
TOOL = {"type": "function", "name": "look", "description": HALF}
EVENTS: list[tuple[dict[str, Any], str]] = [
    ({"type": "session.update", "session": {"instructions": HALF}}, "session.instructions"),
    ({"type": "session.update", "session": {"tools": [TOOL]}}, "session.tools.0.description"),
    ({"type": "conversation.item.create", "item": ITEM}, "item.content.0.text"),
    ({"type": "response.create", "response": {"metadata": {"a": HALF}}}, "response.metadata.a"),
    ({"type": "response.create", "response": {"metadata": {HALF: "a"}}}, "response.metadata"),
]


@pytest.mark.parametrize("headers", [{}, {"OpenAI-Beta": "realtime=v1"}], ids=["ga", "beta"])
def test_a_realtime_event_names_the_field_and_the_session_goes_on(
    server: Served, headers: dict[str, str]
) -> None:
    url = server.url.replace("http", "ws") + "/v1/realtime"
    with connect(url, additional_headers=headers) as socket:
        for number, (event, param) in enumerate(EVENTS):
            socket.send(json.dumps({"event_id": f"mine-{number}", **event}))
            error = _next(socket, "error")["error"]
            assert (error["event_id"], error["param"]) == (f"mine-{number}", param)
        socket.send('{"type": "session.update", "session": {"type": "realtime"}}')
        assert _next(socket, "session.updated")


def _next(socket: Any, kind: str) -> dict[str, Any]:
    while True:
        event: dict[str, Any] = json.loads(socket.recv(timeout=5))
        if event["type"] == kind:
            return event


@pytest.mark.parametrize("media_type", ["", "text/plain", "application/x-www-form-urlencoded"])
def test_json_that_is_not_called_so_is_checked_too(http: httpx.Client, media_type: str) -> None:
    body = json.dumps(CHAT | {"messages": [{"role": "user", "content": HALF}]}).encode()
    headers = {"content-type": media_type} if media_type else {}
    reply = http.post("/v1/chat/completions", content=body, headers=headers)
    assert (reply.status_code, reply.json()["error"]["param"]) == (400, "messages.0.content")
