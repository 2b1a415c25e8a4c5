"""What holds for every request: its id, its size, the envelope."""

import json
from collections.abc import Iterator

import httpx
import pytest

from tests.entrypoints.http.fake import FakeBackend

CHAT = {"model": "org/ming", "messages": [{"role": "user", "content": "hello"}]}


def padded(size: int) -> bytes:
    """A valid chat body of exactly `size` bytes."""
    empty = json.dumps({**CHAT, "user": ""}).encode()
    return json.dumps({**CHAT, "user": "x" * (size - len(empty))}).encode()


def post(http: httpx.Client, content: bytes | Iterator[bytes]) -> httpx.Response:
    json_type = {"content-type": "application/json"}
    return http.post("/v1/chat/completions", content=content, headers=json_type)


@pytest.mark.parametrize(
    ("method", "path", "status"),
    [
        ("GET", "/health", 200),
        ("GET", "/v1/models", 200),
        ("GET", "/docs", 200),
        ("GET", "/nowhere", 404),
        ("GET", "/v1/chat/completions", 405),
        ("POST", "/v1/chat/completions", 400),
    ],
)
def test_every_response_has_a_request_id_of_its_own(
    http: httpx.Client, method: str, path: str, status: int
) -> None:
    replies = [http.request(method, path, headers={"X-Request-Id": "mine"}) for _ in range(2)]
    assert {reply.status_code for reply in replies} == {status}
    assert len({reply.headers["x-request-id"] for reply in replies} | {"mine"}) == 3


def test_the_request_id_is_the_pipelines_and_the_answers(
    http: httpx.Client, backend: FakeBackend
) -> None:
    reply = http.post("/v1/chat/completions", json=CHAT)
    request_id = reply.headers["x-request-id"]
    assert backend.requests[0].id == request_id
    assert reply.json()["id"] == f"chatcmpl-{request_id}"


def test_a_body_of_the_greatest_size_is_read(http: httpx.Client) -> None:
    assert post(http, padded(FakeBackend.max_body_bytes)).status_code == 200


@pytest.mark.parametrize("chunked", [False, True])
def test_a_larger_body_is_refused_before_it_is_parsed(
    http: httpx.Client, backend: FakeBackend, chunked: bool
) -> None:
    content = padded(FakeBackend.max_body_bytes + 1)
    reply = post(http, iter([content]) if chunked else content)
    assert reply.status_code == 413
    assert reply.json()["error"]["code"] == "request_too_large"
    assert reply.headers["x-request-id"]
    assert backend.requests == []


@pytest.mark.parametrize(
    ("method", "path", "status", "code"),
    [
        ("GET", "/v1/nowhere", 404, "not_found"),
        ("DELETE", "/v1/audio/speech", 405, "method_not_allowed"),
    ],
)
def test_an_unknown_route_answers_with_the_envelope(
    http: httpx.Client, method: str, path: str, status: int, code: str
) -> None:
    reply = http.request(method, path)
    assert reply.status_code == status
    error = reply.json()["error"]
    assert (error["type"], error["code"], error["param"]) == ("invalid_request_error", code, None)
    assert path in error["message"]
