"""A real server in a process of its own, and what its engines say about themselves."""

import json
import os
import random
import shlex
import signal
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import IO, Any

import httpx
import psutil

from sglang_omni.engines.runtime.ports import (
    MAX_TRIES,
    MIN_PORT,
    find_free_port,
    read_ephemeral_start,
)
from tests.testing.machine import PATIENCE

# One client for all: to make one reads every certificate of the system, and a test that asks for
# readiness twenty times a second would keep half a core from the server that is starting.
HTTP = httpx.Client(timeout=5)

START_DEADLINE_S = 180.0 * PATIENCE
STOP_DEADLINE_S = 20.0 * PATIENCE
SGLANG_SPAN = 10_000
# What the engine counters show when nothing is in flight.
IDLE = {
    "thinker": ("running", "waiting", "kv_tokens_used"),
    "talker": ("active_slots", "waiting"),
}


@dataclass(frozen=True)
class RunningServer:
    """A server on a loopback port. `seconds_to_ready` counts from its spawn."""

    pid: int
    url: str
    log: IO[str]
    seconds_to_ready: float

    @property
    def printed(self) -> str:
        """What the server itself has printed so far."""
        # Opened anew: the server writes wherever its descriptor, which is ours, was moved to.
        return Path(f"/proc/self/fd/{self.log.fileno()}").read_text(errors="replace")

    @property
    def api(self) -> str:
        """Base address of the OpenAI routes."""
        return f"{self.url}/v1"

    def engine(self, name: str) -> dict[str, Any]:
        """State, process and counters of one engine."""
        engines: dict[str, Any] = HTTP.get(f"{self.url}/health").json()["engines"]
        state: dict[str, Any] = engines[name]
        return state

    def ready_status(self) -> int:
        """The status of `/ready`."""
        return HTTP.get(f"{self.url}/ready").status_code

    def is_idle(self) -> bool:
        """Whether no engine holds a request, a slot, or tokens of one."""
        return all(
            self.engine(name)["counters"].get(counter) == 0
            for name, counters in IDLE.items()
            for counter in counters
        )


def serve_options() -> tuple[str, ...]:
    """Options for every server under test, for a machine with a card."""
    return tuple(shlex.split(os.environ.get("SGLANG_OMNI_SERVE_OPTIONS", "")))


def wait_until(condition: Callable[[], bool], seconds: float, what: str) -> float:
    """Poll until `condition()` holds; returns the seconds it took, fails after `seconds`."""
    began = time.monotonic()
    while not condition():
        assert time.monotonic() - began < seconds, f"not within {seconds} s: {what}"
        time.sleep(0.05)
    return time.monotonic() - began


@contextmanager
def run_server(
    *command: str, ready: str, env: dict[str, str] | None = None, port: int | None = None
) -> Iterator[RunningServer]:
    """Run a server command with `--port` added; stop it by SIGINT and leave no process.

    `ready` is the path that answers 200 once it serves. Without a `port` it takes a free one.
    """
    port = port or free_port()
    url = f"http://127.0.0.1:{port}"
    with tempfile.TemporaryFile("w+") as log:
        process = subprocess.Popen(
            [sys.executable, *command, "--port", str(port)],
            stdout=log,
            stderr=subprocess.STDOUT,
            env={**os.environ, **(env or {})},
        )
        try:
            seconds = wait_until(
                lambda: answers(process, log, url + ready), START_DEADLINE_S, "server ready"
            )
            yield RunningServer(process.pid, url, log, seconds)
        finally:
            stop(process)


def stop(process: subprocess.Popen[bytes]) -> None:
    """Interrupt a server as Ctrl-C does; fails if anything of it is left."""
    if process.poll() is not None:
        return
    family = psutil.Process(process.pid).children(recursive=True)
    process.send_signal(signal.SIGINT)
    try:
        process.wait(STOP_DEADLINE_S)
    finally:
        process.kill()
    _, alive = psutil.wait_procs(family, timeout=5)
    assert not alive, f"left behind: {alive}"


def answers(process: subprocess.Popen[bytes], log: IO[str], url: str) -> bool:
    """Whether `url` says 200; fails with the log when the server has ended."""
    if process.poll() is not None:
        log.seek(0)
        raise AssertionError(f"the server ended with {process.returncode}:\n{log.read()[-4000:]}")
    try:
        return HTTP.get(url).status_code == 200
    except httpx.HTTPError:
        return False


@dataclass
class Call:
    """A request in a thread of its own: what came back, and when it ended."""

    status: int = 0
    media_type: str = ""
    text: str = ""
    cut: bool = False
    started: bool = False
    ended_at: float = 0.0

    def run(self, url: str, body: dict[str, Any], headers: dict[str, str] | None = None) -> None:
        """Make the request and read its answer to the end, or to the cut."""
        try:
            with httpx.stream("POST", url, json=body, headers=headers, timeout=120) as response:
                self.status = response.status_code
                self.media_type = response.headers.get("content-type", "")
                for piece in response.iter_text():
                    self.text += piece
                    self.started = True
        except httpx.HTTPError as error:
            self.cut = isinstance(error, httpx.RemoteProtocolError)
            self.text += f"{type(error).__name__}: {error}"
        finally:
            self.ended_at = time.monotonic()

    @property
    def failed_visibly(self) -> bool:
        """Whether the answer ended in an error.

        That is an envelope with a status from 500 on, an error event, or an audio file that ends in
        the middle.
        """
        if self.status == 200 and self.media_type.startswith("audio/"):
            return self.cut
        if self.status == 200:
            last = self.text.strip().splitlines()[-1].removeprefix("data: ")
            return last.startswith("{") and "error" in json.loads(last)
        return self.status >= 500 and json.loads(self.text)["error"]["type"] == "server_error"


def call(
    url: str, body: dict[str, Any], headers: dict[str, str] | None = None
) -> tuple[Call, threading.Thread]:
    """Begin a request; the thread ends with it."""
    made = Call()
    thread = threading.Thread(target=made.run, args=(url, body, headers))
    thread.start()
    return made, thread


def free_port() -> int:
    """A loopback port that no connection is given before its server has started, seconds later.

    SGLang needs the one 10,000 above it, too.
    """
    below = read_ephemeral_start() - SGLANG_SPAN
    return find_free_port(random.sample(range(MIN_PORT, below), MAX_TRIES))
