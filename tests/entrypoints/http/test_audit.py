"""Refusals leave a line in the audit log, without content, and never too many."""

import json
import logging
import socket
import time
from collections.abc import Callable, Iterator
from contextlib import closing
from typing import Any

import httpx
import pytest

from sglang_omni.config.http_options import HttpOptions
from sglang_omni.config.rate_limit_options import RateLimitOptions
from sglang_omni.entrypoints.api_keys import Keys, _digest
from sglang_omni.entrypoints.http.middleware.auth import Access
from sglang_omni.observability.refusals import MAX_LINES_PER_SECOND
from sglang_omni.protocol.errors import InvalidRequest
from tests.entrypoints.http.fake import Served, playing, serving

KEY, SECRET = "a-key-of-one-user", "what-only-the-client-knows"
CHATS = "/v1/chat/completions"
CHAT: dict[str, Any] = {"model": "org/ming", "messages": [{"role": "user", "content": SECRET}]}
AUTH = {"Authorization": f"Bearer {KEY}"}


@pytest.fixture
def served() -> Iterator[Served]:
    access = Access(Keys((_digest(KEY),)), hosts=frozenset({"127.0.0.1"}))
    limits = HttpOptions(header_timeout=1.0)
    rates = RateLimitOptions(requests_per_minute=3)
    with serving(access, limits=limits, rate_limits=rates) as running:
        yield running


@pytest.fixture
def audit(caplog: pytest.LogCaptureFixture) -> Callable[[], list[dict[str, Any]]]:
    caplog.set_level(logging.INFO, "sglang_omni.audit")

    def entries() -> list[dict[str, Any]]:
        time.sleep(0.1)
        found = [one for one in caplog.records if one.name == "sglang_omni.audit"]
        return [json.loads(one.getMessage()) for one in found]

    return entries


def send(served: Served, data: bytes) -> None:
    url = httpx.URL(served.url)
    with closing(socket.create_connection((url.host, url.port or 0), timeout=5)) as end:
        end.sendall(data)
        end.recv(65_536)


def schema(value: dict[str, Any]) -> dict[str, Any]:
    named = {"name": "x", "schema": value}
    return {**CHAT, "response_format": {"type": "json_schema", "json_schema": named}}


def test_every_kind_of_refusal_leaves_one_line(
    served: Served, audit: Callable[[], list[dict[str, Any]]]
) -> None:
    url = f"{served.url}{CHATS}?q={SECRET}"
    httpx.post(url, json=CHAT, headers={"Authorization": f"Bearer {SECRET}"})
    httpx.post(url, json=CHAT, headers={**AUTH, "Host": f"{SECRET}.example"})
    httpx.post(f"{served.url}/admin/profile/{SECRET}", headers=AUTH)
    httpx.post(url, content=b"x" * (2 << 20), headers=AUTH)
    httpx.post(url, json=schema({"minItems": 10**9, "title": SECRET}), headers=AUTH)
    for _ in range(2):
        httpx.post(url, json=CHAT, headers=AUTH)
    send(served, b"GET /%s HTTP/1.1\r\n\r\n" % (SECRET.encode() * 1000))
    send(served, b"GET / HTTP/1.1\r\nHost: x\r\nX: %s\r\n\r\n" % (b"x" * 70_000))
    send(served, b"GET / HTTP/1.1\r\nHost: x")
    send(served, b"%s\r\n\r\n" % SECRET.encode())
    served.backend.draining.set()
    httpx.post(url, json=CHAT, headers=AUTH)
    entries = audit()
    assert [(entry["status"], entry["reason"]) for entry in entries] == [
        (401, "invalid_api_key"),
        (403, "forbidden"),
        (403, "forbidden"),
        (413, "request_too_large"),
        (400, "schema_refused"),
        (429, "rate_limit_requests"),
        (414, "url_too_long"),
        (431, "headers_too_large"),
        (408, "request_timeout"),
        (400, "malformed_http"),
        (429, "rate_limit_requests"),
    ]
    assert SECRET not in json.dumps(entries)
    assert KEY not in json.dumps(entries)
    assert {entry["client"] for entry in entries} == {"127.0.0.1"}
    owners = [entry["owner"] for entry in entries]
    assert owners[0] == owners[-2] == "none"
    assert owners[3] == owners[4] == owners[5]
    assert len(owners[3]) == 32
    assert entries[4]["route"] == f"POST {CHATS}"
    assert len(entries[4]["request_id"]) == 32


def test_refused_media_and_overload_and_draining_are_known(
    served: Served, audit: Callable[[], list[dict[str, Any]]]
) -> None:
    error = InvalidRequest(f"messages: {SECRET}")
    error.reason = "media_refused"
    served.backend.script = playing(then=error)
    httpx.post(f"{served.url}{CHATS}", json=CHAT, headers=AUTH)
    served.backend.draining.set()
    httpx.post(f"{served.url}{CHATS}", json=CHAT, headers=AUTH)
    reasons = [entry["reason"] for entry in audit()]
    assert reasons == ["media_refused", "draining"]
    metrics = httpx.get(f"{served.url}/metrics", headers=AUTH).text
    assert 'sgl_omni_refusals_total{reason="media_refused"} 1.0' in metrics


def test_what_was_merely_asked_wrongly_leaves_none(
    served: Served, audit: Callable[[], list[dict[str, Any]]]
) -> None:
    httpx.post(f"{served.url}{CHATS}", json={**CHAT, SECRET: 1}, headers=AUTH)
    httpx.get(f"{served.url}/nowhere", headers=AUTH)
    assert audit() == []


def test_a_forged_address_is_not_written_down(
    served: Served, audit: Callable[[], list[dict[str, Any]]]
) -> None:
    httpx.post(f"{served.url}{CHATS}", json=CHAT, headers={"X-Forwarded-For": SECRET})
    (entry,) = audit()
    assert SECRET not in json.dumps(entry)


def test_a_flood_of_refusals_leaves_few_lines_and_their_number(
    served: Served, audit: Callable[[], list[dict[str, Any]]]
) -> None:
    with httpx.Client(base_url=served.url) as client:
        for _ in range(150):
            client.post(CHATS, json=CHAT)
    time.sleep(1.1)
    entries = audit()
    counted = sum(entry["count"] for entry in entries if entry["reason"] == "suppressed")
    lines = [entry for entry in entries if entry["reason"] != "suppressed"]
    assert counted + len(lines) == 150
    assert counted > 0
    assert len(lines) <= 4 * MAX_LINES_PER_SECOND
    metrics = httpx.get(f"{served.url}/metrics", headers=AUTH).text
    assert 'sgl_omni_refusals_total{reason="invalid_api_key"} 150.0' in metrics
