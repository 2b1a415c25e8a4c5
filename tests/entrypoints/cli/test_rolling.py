"""Servers behind a proxy are restarted one after the other, under load, and nobody notices."""

import itertools
import os
import signal
import subprocess
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from tests.entrypoints.cli.proxy import Proxy, proxy
from tests.entrypoints.cli.test_drain import START_S, answers
from tests.server.running import Call, call, free_port, wait_until

ROOT = Path(__file__).parents[3]
CLIENTS = 6
DRAIN_S = 30
MESSAGES = [{"role": "user", "content": "hello"}]
CHAT: dict[str, Any] = {"model": "org/ming", "messages": MESSAGES}
# Requests, and what a whole answer to each ends with.
ASKS = [({**CHAT, "stream": True}, "data: [DONE]"), (CHAT, "}")]


class RollingServer:
    """`sgl-omni serve` without engines, on a port that it keeps over restarts."""

    def __init__(self) -> None:
        self._port = free_port()
        self.url = f"http://127.0.0.1:{self._port}"
        self._process: subprocess.Popen[bytes] | None = None

    def start(self) -> None:
        """Start it, and wait until it is ready."""
        module = ["-m", "tests.entrypoints.cli.slow_server", str(self._port), str(DRAIN_S)]
        environment = {**os.environ, "PYTHONPATH": str(ROOT)}
        self._process = subprocess.Popen([sys.executable, *module], env=environment, cwd=ROOT)
        wait_until(lambda: answers(self.url, self._process), START_S, "it serves")

    def stop(self) -> int:
        """Have it drain and end; its exit status."""
        assert self._process is not None
        self._process.send_signal(signal.SIGTERM)
        return self._process.wait(DRAIN_S + 10)

    def kill(self) -> None:
        """End it, whatever it does."""
        if self._process is not None:
            self._process.kill()
            self._process.wait()


@contextmanager
def load(url: str) -> Iterator[list[tuple[str, Call]]]:
    """Clients that ask one thing after the other while the body runs; what they asked, and got."""
    made: list[tuple[str, Call]] = []
    over, turns = threading.Event(), itertools.count()

    def ask() -> None:
        while not over.is_set():
            body, end = ASKS[next(turns) % len(ASKS)]
            one, thread = call(f"{url}/v1/chat/completions", body)
            thread.join()
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


def wait_for_request(passed: Proxy, url: str) -> None:
    known = passed.passed[url]
    wait_until(lambda: passed.passed[url] > known, 30, "it is asked again")


@pytest.mark.extended
def test_a_rolling_restart_behind_a_proxy_loses_nothing() -> None:
    servers = [RollingServer(), RollingServer()]
    try:
        for server in servers:
            server.start()
        with proxy([server.url for server in servers]) as (url, passed), load(url) as made:
            wait_until(lambda: len(made) >= CLIENTS, 60, "load")
            for server in servers:
                assert server.stop() == 0
                server.start()
                wait_for_request(passed, server.url)
    finally:
        for server in servers:
            server.kill()
    lost = [
        (one.status, one.text[-200:])
        for end, one in made
        if one.status != 200 or one.failed_visibly or not one.text.rstrip().endswith(end)
    ]
    assert len(made) >= 2 * CLIENTS
    assert lost == []
