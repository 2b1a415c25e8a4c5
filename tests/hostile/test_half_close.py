"""A client that ends its sending side after its request gets its answer.

One that left does not keep the server at work.
"""

import asyncio
import json
import socket
from contextlib import closing
from typing import Any

import pytest

from tests.entrypoints.http.fake import echo, hanging
from tests.hostile.clients import CHAT, CHATS, connect, head, read_all
from tests.hostile.conftest import Attacked

CONTINUE = b"HTTP/1.1 100 Continue\r\n\r\n"
STREAMED = {**CHAT, "stream": True}


def asking(attacked: Attacked, body: dict[str, Any], version: bytes = b"1.1") -> socket.socket:
    """A connection on which `body` has been sent, whole."""
    content = json.dumps(body).encode()
    end = connect(attacked.served, seconds=5)
    request = head(CHATS, Content_Length=len(content), **attacked.headers) + content
    end.sendall(request.replace(b"HTTP/1.1", b"HTTP/" + version, 1))
    return end


def slowly(pause_s: float) -> Any:
    """A script that thinks for a while before it answers."""

    async def script(request: Any) -> Any:
        await asyncio.sleep(pause_s)
        async for event in echo(request):
            yield event

    return script


@pytest.mark.parametrize("pause_s", [0.0, 1.2])
@pytest.mark.parametrize("version", [b"1.1", b"1.0"])
@pytest.mark.parametrize("body", [CHAT, STREAMED], ids=["whole", "streamed"])
def test_a_client_that_half_closes_gets_its_answer(
    attacked: Attacked, body: dict[str, Any], version: bytes, pause_s: float
) -> None:
    attacked.served.backend.script = slowly(pause_s)
    with closing(asking(attacked, body, version)) as end:
        end.shutdown(socket.SHUT_WR)
        answer = read_all(end).removeprefix(CONTINUE)
    assert answer.startswith(b"HTTP/1.1 200")
    assert b"there" in answer
    if body is STREAMED:
        assert b"[DONE]" in answer


def test_a_get_that_half_closes_gets_its_answer(attacked: Attacked) -> None:
    with closing(connect(attacked.served, seconds=5)) as end:
        end.sendall(b"GET /health HTTP/1.1\r\nHost: localhost\r\n\r\n")
        end.shutdown(socket.SHUT_WR)
        assert b"alive" in read_all(end)


@pytest.mark.parametrize("body", [CHAT, STREAMED], ids=["whole", "streamed"])
def test_a_client_that_left_ends_its_work(attacked: Attacked, body: dict[str, Any]) -> None:
    attacked.served.backend.script = hanging()
    with closing(asking(attacked, body)):
        attacked.served.backend.wait_running(1)
    attacked.served.backend.wait_running(0, seconds=1)


@pytest.mark.parametrize("body", [b"", b'{"model'])
def test_half_a_request_is_not_waited_for(attacked: Attacked, body: bytes) -> None:
    with closing(connect(attacked.served, seconds=5)) as end:
        end.sendall(head(Content_Length=100, **attacked.headers) + body)
        end.shutdown(socket.SHUT_WR)
        assert read_all(end) == b""
    assert attacked.served.backend.requests == []
