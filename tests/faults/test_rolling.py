"""Servers behind a proxy are restarted one after the other, under load, and nobody notices."""

import itertools
import threading
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from typing import Any

import pytest

from tests.faults.conftest import COMMAND
from tests.faults.proxy import proxy
from tests.server.running import PATIENCE, Call, free_port, run_server, wait_until

pytestmark = pytest.mark.faults

CLIENTS = 4
TEXT = "The mill stands by the river, and the river runs past the mill."
MESSAGES = [{"role": "user", "content": "Tell me about the river."}]
CHAT: dict[str, Any] = {"model": "ming-omni", "messages": MESSAGES, "max_tokens": 40}
SPEECH: dict[str, Any] = {"model": "ming-omni", "input": TEXT}
# Requests, and what a whole answer to each ends with.
ASKS = [
    ("chat/completions", {**CHAT, "stream": True}, "data: [DONE]"),
    ("chat/completions", CHAT, "}"),
    ("audio/speech", {**SPEECH, "stream_format": "sse"}, "}"),
    ("chat/completions", {**CHAT, "stream": True, "modalities": ["text", "audio"]}, "[DONE]"),
]


class RollingServer:
    """A server on a port that it keeps over restarts."""

    def __init__(self) -> None:
        self._port = free_port()
        self._life = ExitStack()
        self.url = f"http://127.0.0.1:{self._port}"

    def start(self) -> None:
        """Start it, and wait until it is ready."""
        command = (*COMMAND, "--text-only")
        self._life.enter_context(run_server(*command, ready="/ready", port=self._port))

    def stop(self) -> None:
        """Have it drain and end."""
        self._life.close()


@contextmanager
def load(url: str) -> Iterator[list[tuple[str, Call]]]:
    """Clients that ask one thing after the other while the body runs; what they asked, and got."""
    made: list[tuple[str, Call]] = []
    over, turns = threading.Event(), itertools.count()

    def ask() -> None:
        while not over.is_set():
            route, body, end = ASKS[next(turns) % len(ASKS)]
            one = Call()
            one.run(f"{url}/v1/{route}", body)
            made.append((end, one))

    clients = [threading.Thread(target=ask) for _ in range(CLIENTS)]
    for client in clients:
        client.start()
    try:
        yield made
    finally:
        over.set()
        for client in clients:
            client.join()


def test_a_rolling_restart_behind_a_proxy_loses_nothing() -> None:
    servers = [RollingServer(), RollingServer()]
    try:
        for server in servers:
            server.start()
        with proxy([server.url for server in servers]) as (url, passed), load(url) as made:
            wait_until(lambda: len(made) >= CLIENTS, 60 * PATIENCE, "load")
            for server in servers:
                server.stop()
                server.start()
                before = passed.passed[server.url]
                wait_until(
                    lambda url=server.url, before=before: passed.passed[url] > before + CLIENTS,
                    60 * PATIENCE,
                    "it is asked again",
                )
    finally:
        for server in servers:
            server.stop()
    print(f"{len(made)} requests, {dict(passed.passed)}")
    lost = [
        (one.status, one.text[-200:])
        for end, one in made
        if one.status != 200 or one.failed_visibly or not one.text.rstrip().endswith(end)
    ]
    assert len(made) > 20 and lost == []
