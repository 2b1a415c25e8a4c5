"""Request lines and headers: bounded in size and time, before a key is asked for."""

import asyncio
import os
import time
from contextlib import closing, suppress
from pathlib import Path
from typing import Any

import httpx
import pytest
from websockets.exceptions import InvalidStatus
from websockets.sync.client import connect as connect_websocket

from tests.entrypoints.http.fake import echo
from tests.hostile.clients import (
    CHAT,
    bystander,
    connect,
    head,
    read_all,
    send_until_refused,
    status_of,
)
from tests.hostile.conftest import LIMITS, Attacked

# Waits are judged.
pytestmark = pytest.mark.alone
KIB, MIB = 1 << 10, 1 << 20


def resident_bytes() -> int:
    """Memory of this process, the server's threads among it."""
    pages = int(Path("/proc/self/statm").read_text().split()[1])
    return pages * os.sysconf("SC_PAGE_SIZE")


@pytest.mark.parametrize(
    "start",
    [
        pytest.param(b"GET /v1/models HTTP/1.1\r\nHost: localhost\r\nX-Long: ", id="value"),
        pytest.param(b"GET /v1/models HTTP/1.1\r\nHost: localhost\r\n", id="name"),
        pytest.param(b"GET /v1/models?", id="url"),
        pytest.param(
            b"POST /v1/models HTTP/1.1\r\nHost: localhost\r\nTransfer-Encoding: chunked\r\n\r\n"
            b"1\r\n{\r\n0\r\nX-Trailer: ",
            id="trailer",
        ),
    ],
)
def test_one_endless_line_is_refused_and_not_kept(attacked: Attacked, start: bytes) -> None:
    before = resident_bytes()
    with bystander(attacked.served, attacked.headers), closing(connect(attacked.served)) as end:
        end.sendall(start)
        sent = send_until_refused(end, b"x" * MIB, 300)
    assert sent < 300 * MIB
    assert resident_bytes() - before < 64 * MIB


@pytest.mark.parametrize(
    ("request_bytes", "status"),
    [
        (b"GET / HTTP/1.1\r\nHost: localhost\r\nX: %s\r\n\r\n" % (b"x" * 70 * KIB), 431),
        (b"GET / HTTP/1.1\r\nHost: localhost\r\n%s\r\n" % (b"X: yyyyyyyy\r\n" * 6000), 431),
        (b"GET / HTTP/1.1\r\nHost: localhost\r\nX: %s" % (b"x" * 70 * KIB), 431),
        (b"GET /%s HTTP/1.1\r\nHost: localhost\r\n\r\n" % (b"x" * 9 * KIB), 414),
        (b"GET /%s" % (b"x" * 9 * KIB), 414),
        (b"\r\n" * 40 * KIB, 431),
        (b"GET / HTTP/1.1\r\nConnection: close\r\nX: %s\r\n\r\n" % (b"x" * 60 * KIB), 200),
        (b"NONSENSE\r\n\r\n", 400),
    ],
)
def test_what_is_too_long_is_refused_in_an_envelope(
    attacked: Attacked, request_bytes: bytes, status: int
) -> None:
    with closing(connect(attacked.served)) as end:
        end.sendall(request_bytes)
        answer = read_all(end)
    assert status_of(answer) == status
    if status != 200:
        assert b'"error"' in answer
        assert b"connection: close" in answer


def test_a_websocket_handshake_has_the_same_limits(attacked: Attacked) -> None:
    url = attacked.served.url.replace("http", "ws") + "/v1/realtime"
    long = {**attacked.headers, "X-Long": "x" * 70 * KIB}
    for address, headers, status in (
        (url, long, 431),
        (f"{url}?q={'x' * 9 * KIB}", attacked.headers, 414),
    ):
        with pytest.raises(InvalidStatus) as refused:
            connect_websocket(address, additional_headers=headers)
        assert refused.value.response.status_code == status


@pytest.mark.parametrize(
    ("handshake", "status"),
    [
        (b"GET /v1/realtime HTTP/1.1\r\nX-Long: %s\r\n" % (b"x" * 10 * KIB), 431),
        (b"GET /v1/realtime HTTP/1.1\r\n%s" % (b"X: y\r\n" * 200), 431),
        (b"POST /v1/realtime HTTP/1.1\r\n", 405),
        (b"GET /v1/realtime HTTP/1.0\r\n", 400),
    ],
)
def test_a_handshake_that_cannot_be_read_is_answered_and_closed(
    attacked: Attacked, handshake: bytes, status: int
) -> None:
    upgrade = b"Host: localhost\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n\r\n"
    with closing(connect(attacked.served, seconds=5)) as end:
        end.sendall(handshake + upgrade)
        assert status_of(read_all(end)) == status


@pytest.mark.parametrize(
    "start",
    [
        pytest.param(b"", id="nothing"),
        pytest.param(b"\r\n", id="line-end"),
        pytest.param(b"GET / HT", id="half-a-line"),
        pytest.param(b"GET / HTTP/1.1\r\nHost: loc", id="half-a-head"),
        pytest.param(b"GET /health HTTP/1.1\r\nHost: localhost\r\n\r\n", id="kept-alive"),
        pytest.param(b"GET /health HTTP/1.1\r\nHost: localhost\r\n\r\nGE", id="second-request"),
    ],
)
def test_connections_without_a_whole_head_are_closed(attacked: Attacked, start: bytes) -> None:
    ends = [connect(attacked.served) for _ in range(50)]
    started = time.monotonic()
    with bystander(attacked.served, attacked.headers):
        for end in ends:
            end.sendall(start)
        for end in ends:
            read_all(end)
            end.close()
    longest = max(LIMITS.header_timeout, LIMITS.keep_alive_timeout)
    assert time.monotonic() - started < longest + 2


def test_a_head_that_trickles_in_is_refused_in_time(attacked: Attacked) -> None:
    started, answer = time.monotonic(), b""
    with bystander(attacked.served, attacked.headers), closing(connect(attacked.served)) as end:
        end.sendall(b"GET / HTTP/1.1\r\nHost: localhost\r\n")
        end.settimeout(0.05)
        while not answer and time.monotonic() - started < 10:
            end.sendall(b"X: y\r\n")
            with suppress(TimeoutError):
                answer = end.recv(65_536)
    assert time.monotonic() - started < LIMITS.header_timeout + 2
    assert status_of(answer) == 408


def test_a_slow_answer_outlives_the_time_for_heads(attacked: Attacked) -> None:
    """Even where its client sends a stray line end after the body, as some do."""

    async def slowly(request: Any) -> Any:
        await asyncio.sleep(2 * LIMITS.header_timeout + 0.2)
        async for event in echo(request):
            yield event

    attacked.served.backend.script = slowly
    content = httpx.Request("POST", "http://x", json=CHAT).read()
    with closing(connect(attacked.served)) as end:
        end.sendall(head(Content_Length=len(content), Connection="close", **attacked.headers))
        end.sendall(content + b"\r\n")
        answer = read_all(end)
    assert status_of(answer) == 200
    assert b"hello there" in answer


def test_a_flood_of_pipelined_requests_is_refused(attacked: Attacked) -> None:
    with bystander(attacked.served, attacked.headers), closing(connect(attacked.served)) as end:
        sent = send_until_refused(end, b"GET /health HTTP/1.1\r\nHost: a\r\n\r\n" * 2000, 300)
        read_all(end)
    assert sent < 300 * 2000 * 33


def test_refusals_of_heads_are_counted_under_no_name_of_a_client(attacked: Attacked) -> None:
    def counted() -> float:
        text = httpx.get(f"{attacked.served.url}/metrics", headers=attacked.headers).text
        line = 'sgl_omni_requests_total{route="protocol",status="414"} '
        return sum(float(one.removeprefix(line)) for one in text.splitlines() if line in one)

    before = counted()
    with closing(connect(attacked.served)) as end:
        end.sendall(b"GET /" + b"a" * 10_000 + b" HTTP/1.1\r\nHost: localhost\r\n\r\n")
        assert status_of(read_all(end)) == 414
    assert counted() == before + 1
