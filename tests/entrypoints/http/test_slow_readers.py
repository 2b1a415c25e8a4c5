"""A client who does not read is bounded in bytes and time, and slows nobody."""

import asyncio
import itertools
import json
import socket
import threading
import time
from collections.abc import AsyncGenerator, Iterator
from contextlib import closing
from typing import Any

import httpx
import pytest

from sglang_omni.entrypoints.http.app import create_app
from sglang_omni.entrypoints.http.transport.slow_clients import SlowClientRules
from sglang_omni.entrypoints.http.transport.uvicorn_server import create_web_server, run
from sglang_omni.pipeline.request import AudioDelta, Event, Finished, SpeechRequest, Usage
from tests.entrypoints.http.fake import TONE_S, FakeBackend, Served, tone

OUTPUT_RATE = 44_100
BUDGET, PATIENCE_S = 256 << 10, 0.5
PATCH_BYTES = 2 * round(TONE_S * OUTPUT_RATE)
ENDLESS, SHORT = "endless", "short"
# The kernels of both sides take some as well: on loopback, up to a few megabytes.
KERNEL_BYTES = 8 << 20


class Speaker(FakeBackend):
    """Speaks as fast as it is read, and knows how much."""

    def __init__(self) -> None:
        super().__init__()
        self.spoken: dict[str, int] = {}
        self.script = self._speak

    async def _speak(self, request: SpeechRequest) -> AsyncGenerator[Event, None]:
        for number in itertools.count():
            if request.text != ENDLESS and number == 20:
                break
            self.spoken[request.text] = number * PATCH_BYTES
            yield AudioDelta(tone())
            await asyncio.sleep(0.001)
        yield Finished("stop", Usage())


@pytest.fixture(scope="module")
def speaker() -> Iterator[Served]:
    backend = Speaker()
    listener = socket.socket()
    listener.bind(("127.0.0.1", 0))
    rules = SlowClientRules(BUDGET, PATIENCE_S)
    server = create_web_server(create_app(backend), "critical", 1, slow_clients=rules)
    thread = threading.Thread(target=lambda: run(server.serve(sockets=[listener])))
    thread.start()
    while not server.started:
        time.sleep(0.01)
    yield Served(f"http://127.0.0.1:{listener.getsockname()[1]}", backend)
    server.should_exit = True
    thread.join()
    listener.close()


def body(text: str) -> dict[str, Any]:
    speech = {"response_format": "pcm", "sample_rate": OUTPUT_RATE}
    return {"model": "org/ming", "input": text, **speech}


def ask_and_do_not_read(served: Served, text: str) -> socket.socket:
    """A connection on which an answer is asked for, with small buffers of its own."""
    host, port = served.url.removeprefix("http://").split(":")
    end = socket.socket()
    end.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
    end.connect((host, int(port)))
    content = json.dumps(body(text)).encode()
    head = f"POST /v1/audio/speech HTTP/1.1\r\nHost: {host}\r\nContent-Length: {len(content)}\r\n"
    end.sendall(f"{head}Content-Type: application/json\r\n\r\n".encode() + content)
    return end


def test_a_client_who_reads_nothing_is_bounded_and_then_cut_off(speaker: Served) -> None:
    with closing(ask_and_do_not_read(speaker, ENDLESS)):
        speaker.backend.wait_running(1, seconds=10)
        began = time.monotonic()
        speaker.backend.wait_running(0, seconds=20)
        assert time.monotonic() - began >= PATIENCE_S
    assert isinstance(speaker.backend, Speaker)
    assert speaker.backend.spoken[ENDLESS] < BUDGET + KERNEL_BYTES


@pytest.mark.alone
def test_others_are_not_slowed_by_clients_who_do_not_read(speaker: Served) -> None:
    def seconds() -> float:
        began = time.monotonic()
        for _ in range(5):
            reply = httpx.post(f"{speaker.url}/v1/audio/speech", json=body(SHORT))
            assert len(reply.content) == 20 * PATCH_BYTES
        return time.monotonic() - began

    alone = seconds()
    slow = [ask_and_do_not_read(speaker, ENDLESS) for _ in range(10)]
    speaker.backend.wait_running(10, seconds=5)
    time.sleep(0.3)  # Until they have filled their buffers.
    beside = seconds()
    for end in slow:
        end.close()
    assert beside < 3 * alone + 0.5
    speaker.backend.wait_running(0, seconds=20)


def test_a_slow_reader_who_reads_on_is_served_to_the_end(speaker: Served) -> None:
    end = ask_and_do_not_read(speaker, SHORT)
    received = b""
    with closing(end):
        # Twice the patience in all, but never so long without reading.
        while b"\r\n0\r\n\r\n" not in received[-16:]:
            time.sleep(PATIENCE_S / 5)
            received += end.recv(64 << 10)
    assert len(received) > 20 * PATCH_BYTES


def test_an_answer_that_fits_is_made_without_waiting_for_its_reader(speaker: Served) -> None:
    """Its speech leaves its slot at once, though nobody reads it."""
    with closing(ask_and_do_not_read(speaker, SHORT)) as end:
        speaker.backend.wait_running(0, seconds=2)
        assert end.recv(15) == b"HTTP/1.1 200 OK"
