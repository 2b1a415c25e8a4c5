"""Bodies: bounded in time and in sum, also where they are only half sent."""

import asyncio
import json
import time
from collections.abc import Iterator
from contextlib import closing

import httpx
import pytest

from sglang_omni.entrypoints.http.middleware.drain import InFlight
from sglang_omni.entrypoints.http.transport import http_protocol as protocol
from tests.entrypoints.http.fake import FakeBackend, serving
from tests.hostile.clients import (
    CHAT,
    CHATS,
    bystander,
    connect,
    head,
    read_all,
    send_until_refused,
    status_of,
)
from tests.hostile.conftest import BODIES, Attacked

# Waits are judged.
pytestmark = pytest.mark.alone
MAX_BYTES = FakeBackend.max_body_bytes


@pytest.fixture(autouse=True)
def short_linger(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(protocol, "LINGER_S", 0.5)


def chat_of(size: int) -> bytes:
    """A chat whose body has about `size` bytes."""
    return json.dumps(CHAT).encode() + b" " * size


def trickle(attacked: Attacked, pieces: Iterator[bytes], size: int, **headers: object) -> bytes:
    """What the server answers to a body that announces `size` bytes and comes piece by piece."""
    with closing(connect(attacked.served)) as end:
        end.sendall(head(Content_Length=size, **headers, **attacked.headers))
        end.settimeout(0.01)
        for piece in pieces:
            if not send_until_refused(end, piece, 1):
                break
            try:
                return end.recv(65_536)
            except TimeoutError:
                continue
        end.settimeout(10)
        return read_all(end)


def paced(content: bytes, step: int, pause_s: float) -> Iterator[bytes]:
    for start in range(0, len(content), step):
        yield content[start : start + step]
        time.sleep(pause_s)


@pytest.mark.parametrize("step", [0, 5])
def test_a_body_that_comes_too_slowly_is_refused(attacked: Attacked, step: int) -> None:
    started = time.monotonic()
    content = chat_of(1000)
    pieces = paced(content, step, 0.1) if step else iter([b"{"])
    with bystander(attacked.served, attacked.headers):
        answer = trickle(attacked, pieces, len(content))
    assert status_of(answer) == 408
    assert b"too slowly" in answer
    assert time.monotonic() - started < BODIES.window_s + 1.5
    assert attacked.served.backend.running == 0


def test_a_slow_body_above_the_least_rate_is_served(attacked: Attacked) -> None:
    content = chat_of(10_000)
    answer = trickle(attacked, paced(content, 500, 0.15), len(content), Connection="close")
    assert status_of(answer) == 200


@pytest.mark.parametrize("more", [b" ", b""], ids=["that go on", "that stop"])
def test_half_sent_bodies_are_bounded_in_sum_and_others_send_theirs(
    attacked: Attacked, more: bytes
) -> None:
    half = int(0.9 * MAX_BYTES)
    ends = [connect(attacked.served) for _ in range(12)]
    with bystander(attacked.served, attacked.headers):
        for end in ends:
            end.sendall(head(Content_Length=MAX_BYTES, **attacked.headers))
            end.sendall(b" " * half)
        upload = httpx.post(
            f"{attacked.served.url}{CHATS}",
            content=chat_of(half // 2),
            headers={"Content-Type": "application/json", **attacked.headers},
        )
        answers = []
        for end in ends:
            send_until_refused(end, more, 1)
            answers.append(read_all(end))
            end.close()
    assert upload.status_code == 200
    refused = [answer for answer in answers if status_of(answer) == 503]
    # Those that are left fit, the others made room; all were too slow in the end.
    assert len(refused) >= len(ends) - BODIES.max_held_bytes // half - 1
    assert all(b"retry-after" in answer.lower() for answer in refused)
    assert {status_of(answer) for answer in answers} <= {503, 408}


def test_a_body_that_announces_too_much_is_refused_before_it_is_sent(attacked: Attacked) -> None:
    with closing(connect(attacked.served, seconds=5)) as end:
        end.sendall(head(Content_Length=MAX_BYTES + 1, **attacked.headers))
        answer = read_all(end)
    assert status_of(answer) == 413


def test_a_body_that_is_not_read_is_not_waited_for_long(attacked: Attacked) -> None:
    """It may go on for a moment, so that its client can read why it was refused."""
    with bystander(attacked.served, attacked.headers), closing(connect(attacked.served)) as end:
        started = time.monotonic()
        end.sendall(head("/v1/nowhere", Content_Length=100 * MAX_BYTES, **attacked.headers))
        while time.monotonic() - started < 5 and send_until_refused(end, b"x" * 1000, 1):
            time.sleep(0.02)
    assert time.monotonic() - started < protocol.LINGER_S + 2


def test_the_time_of_a_request_starts_with_its_first_byte(attacked: Attacked) -> None:
    content = chat_of(100_000)
    started = time.monotonic()
    pieces = paced(content, 2000, 0.1)
    answer = trickle(attacked, pieces, len(content), X_Request_Timeout=0.5)
    assert status_of(answer) == 504
    assert b"deadline_exceeded" in answer
    assert time.monotonic() - started < 1.5


def test_an_upload_leaves_its_answer_less_time(attacked: Attacked) -> None:
    content = chat_of(1000)
    pieces = paced(content, 250, 0.2)
    answer = trickle(attacked, pieces, len(content), X_Request_Timeout=30, Connection="close")
    assert status_of(answer) == 200
    (request,) = [one for one in attacked.served.backend.requests if one.timeout_s]
    assert 25 < request.timeout_s < 29.5


def test_a_shutdown_does_not_wait_for_bodies() -> None:
    in_flight = InFlight()
    with serving(in_flight=in_flight) as served, closing(connect(served, seconds=5)) as end:
        content = chat_of(100)
        end.sendall(head(Content_Length=len(content), Connection="close") + content[:10])
        assert httpx.get(f"{served.url}/health").status_code == 200
        assert in_flight.count == 0
        served.backend.draining.set()
        asyncio.run(asyncio.wait_for(in_flight.wait_idle(), 1))
        end.sendall(content[10:])
        answer = read_all(end)
    assert status_of(answer) == 503
    assert b"draining" in answer
    assert served.backend.requests == []


def test_a_refusal_of_a_shutdown_can_be_read_behind_a_large_body() -> None:
    with serving() as served, closing(connect(served)) as end:
        served.backend.draining.set()
        end.sendall(head(Content_Length=MAX_BYTES))
        for _ in range(MAX_BYTES >> 16):
            end.sendall(b" " * 65_536)
            time.sleep(0.005)
        answer = read_all(end)
        served.backend.draining.clear()
    assert status_of(answer) == 503
    assert b"draining" in answer
