"""Requests that a client sends ahead of their answers: each is looked after, not only the last."""

import json
import logging
import socket
import struct
import time
from contextlib import closing

import pytest
from websockets.exceptions import ConnectionClosedError
from websockets.sync.client import connect as connect_websocket

from tests.entrypoints.http.fake import hanging
from tests.hostile.clients import CHAT, CHATS, connect, head, read_all
from tests.hostile.conftest import Attacked

GET = b"GET /health HTTP/1.1\r\nHost: localhost\r\n\r\n"

HANDSHAKE = (
    b"GET /v1/realtime HTTP/1.1\r\nHost: localhost\r\nConnection: Upgrade\r\n"
    b"Upgrade: websocket\r\nSec-WebSocket-Version: 13\r\n"
    b"Sec-WebSocket-Key: AAAAAAAAAAAAAAAAAAAAAA==\r\n\r\n"
)


def post(attacked: Attacked) -> bytes:
    content = json.dumps(CHAT).encode()
    return head(CHATS, Content_Length=len(content), **attacked.headers) + content


def test_a_client_that_leaves_is_noticed_by_the_request_at_work(attacked: Attacked) -> None:
    """Also where it sent another one behind it."""
    attacked.served.backend.script = hanging()
    with closing(connect(attacked.served, seconds=5)) as end:
        end.sendall(post(attacked) + GET)
        attacked.served.backend.wait_running(1)
    attacked.served.backend.wait_running(0, seconds=3)


@pytest.mark.parametrize(
    "behind", [GET + b"PRI  /  X\r\n\r\n", HANDSHAKE], ids=["garbage", "websocket"]
)
def test_what_may_not_follow_a_request_ends_it_without_an_error(
    attacked: Attacked, caplog: pytest.LogCaptureFixture, behind: bytes
) -> None:
    with caplog.at_level(logging.ERROR):
        for _ in range(20):
            with closing(connect(attacked.served, seconds=5)) as end:
                end.sendall(post(attacked) + behind)
                read_all(end)
        attacked.served.backend.wait_running(0)
    assert [one.getMessage() for one in caplog.records if one.levelno >= logging.ERROR] == []


@pytest.mark.parametrize("path", ["/v1/realtime", "/v1/audio/speech/stream"])
def test_a_text_frame_that_is_no_text_closes_its_session_without_an_error(
    attacked: Attacked, caplog: pytest.LogCaptureFixture, path: str
) -> None:
    url = attacked.served.url.replace("http", "ws") + path
    with caplog.at_level(logging.ERROR):
        with connect_websocket(url, additional_headers=attacked.headers) as session:
            session.send(b"\xff\xfe", text=True)
            with pytest.raises(ConnectionClosedError) as closed:
                while True:
                    session.recv(timeout=5)
        assert closed.value.rcvd is not None
        assert closed.value.rcvd.code == 1007
    assert [one.getMessage() for one in caplog.records if one.levelno >= logging.ERROR] == []


@pytest.mark.parametrize("path", ["/v1/realtime", "/v1/audio/speech/stream", "/v1/nowhere"])
def test_a_client_that_leaves_during_a_handshake_is_no_error(
    attacked: Attacked, caplog: pytest.LogCaptureFixture, path: str
) -> None:
    lines = [f"{name}: {value}" for name, value in attacked.headers.items()]
    handshake = HANDSHAKE.replace(b"/v1/realtime", path.encode())
    handshake = handshake.replace(b"\r\n\r\n", "\r\n".join(["", *lines, "", ""]).encode())
    with caplog.at_level(logging.ERROR):
        for _ in range(50):
            with closing(connect(attacked.served, seconds=5)) as end:
                # A connection that is closed with something unread is reset at once.
                end.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
                end.sendall(handshake)
        time.sleep(0.3)
    assert [one.getMessage() for one in caplog.records if one.levelno >= logging.ERROR] == []
