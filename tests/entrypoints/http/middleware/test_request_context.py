"""What holds for every request: its id, its size, the envelope."""

import json
import re
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
    replies = [http.request(method, path) for _ in range(2)]
    assert {reply.status_code for reply in replies} == {status}
    assert len({reply.headers["x-request-id"] for reply in replies}) == 2


@pytest.mark.parametrize("given", ["mine", "req-7f.3:a_b", "0" * 128])
def test_the_callers_id_is_echoed_and_finds_its_timeline(
    http: httpx.Client, backend: FakeBackend, given: str
) -> None:
    reply, later = (
        http.post("/v1/chat/completions", json=CHAT, headers={"X-Request-Id": given})
        for _ in range(2)
    )
    assert reply.headers["x-request-id"] == given
    # Others may send the same: what the server stores and answers has an id of its own.
    own = [request.id for request in backend.requests]
    assert len({*own, given}) == 3
    assert later.json()["id"] == f"chatcmpl-{own[1]}"
    found = http.get(f"/v1/requests/{given}").json()
    assert (found["id"], found["given_id"]) == (own[1], given)
    assert http.get(f"/v1/requests/{own[0]}").json()["id"] == own[0]


@pytest.mark.parametrize("given", ["", "two words", "a/b", "-", "<b>", "0" * 129, "é"])
def test_an_id_that_is_no_plain_word_is_replaced(http: httpx.Client, given: str) -> None:
    reply = http.get("/health", headers={b"X-Request-Id": given.encode()})
    assert reply.status_code == 200
    assert re.fullmatch("[0-9a-f]{32}", reply.headers["x-request-id"])


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
