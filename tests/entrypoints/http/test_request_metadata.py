"""Priorities and deadlines of requests, from bodies and headers."""

from typing import Any

import httpx
import pytest

from tests.entrypoints.http.fake import FakeBackend

CHAT = {"model": "org/ming", "messages": [{"role": "user", "content": "hello"}]}
SPEECH = {"model": "org/ming", "input": "hello"}
both = pytest.mark.parametrize(
    ("path", "body"), [("/v1/chat/completions", CHAT), ("/v1/audio/speech", SPEECH)]
)


@both
def test_a_request_is_normal_and_unhurried_unless_it_says_so(
    http: httpx.Client, backend: FakeBackend, path: str, body: dict[str, Any]
) -> None:
    http.post(path, json=body)
    http.post(path, json={**body, "priority": "high", "timeout": 2})
    http.post(path, json={**body, "timeout": 2}, headers={"X-Request-Timeout": "1.5"})
    assert [request.priority for request in backend.requests] == ["normal", "high", "normal"]
    unhurried, *limits = [request.timeout_s for request in backend.requests]
    assert unhurried is None
    # Less the moment that the request took to arrive.
    assert limits == pytest.approx([2.0, 1.5], abs=0.3)
    assert max(limits) < 2.0


@both
@pytest.mark.parametrize(
    ("change", "header", "param"),
    [
        ({"priority": "realtime"}, None, "priority"),
        ({"timeout": 0}, None, "timeout"),
        ({"timeout": 1e9}, None, "timeout"),
        ({}, "soon", "X-Request-Timeout"),
        ({}, "nan", "X-Request-Timeout"),
        ({}, "-1", "X-Request-Timeout"),
    ],
)
def test_an_unusable_one_is_refused_by_name(
    http: httpx.Client,
    path: str,
    body: dict[str, Any],
    change: dict[str, Any],
    header: str | None,
    param: str,
) -> None:
    headers = {"X-Request-Timeout": header} if header else {}
    reply = http.post(path, json={**body, **change}, headers=headers)
    assert reply.status_code == 400
    assert reply.json()["error"]["param"] == param
