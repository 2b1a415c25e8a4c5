"""Whole servers of one kind behind a proxy, each on a port that it keeps over restarts."""

import os
import signal
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from pathlib import Path

from tests.server.running import (
    START_DEADLINE_S,
    RunningServer,
    answers,
    free_port,
    serve_options,
    stop,
    wait_until,
)

DRAIN_S = 60


class Replica:
    """A server of the bundled model with default settings, and a folder of voices."""

    def __init__(self, voices: Path) -> None:
        self.port = free_port()
        self.url = f"http://127.0.0.1:{self.port}"
        self._voices = voices
        self._log = tempfile.TemporaryFile("w+")  # noqa: SIM115
        self._process: subprocess.Popen[bytes] | None = None

    @property
    def running(self) -> RunningServer:
        """The server as other tests know one."""
        assert self._process is not None
        return RunningServer(self._process.pid, self.url, self._log, 0.0)

    def start(self) -> None:
        """Start the server, without waiting for it."""
        command = [sys.executable, "-m", "sglang_omni", "serve", "--version", "v1"]
        command += ["--port", str(self.port), "--voices-dir", str(self._voices)]
        command += ["--drain-timeout", str(DRAIN_S), *serve_options()]
        self._process = subprocess.Popen(command, stdout=self._log, stderr=subprocess.STDOUT)

    def wait_ready(self) -> float:
        """Wait until the server is ready. Return the seconds that took."""
        process = self._process
        assert process is not None
        return wait_until(
            lambda: answers(process, self._log, f"{self.url}/ready"), START_DEADLINE_S, "ready"
        )

    def drain(self) -> None:
        """Have the server finish its requests, accept no new ones, and end."""
        assert self._process is not None
        os.kill(self._process.pid, signal.SIGTERM)

    def wait_ended(self) -> int:
        """Wait until a server that drains has ended. Return its exit status."""
        assert self._process is not None
        return self._process.wait(DRAIN_S + 30)

    def close(self) -> None:
        """End the server, whatever it does."""
        if self._process is not None:
            stop(self._process)
        self._log.close()


@contextmanager
def run_replicas(voices: Path, number: int = 2) -> Iterator[Sequence[Replica]]:
    """Run servers that share a folder of voices, and yield them once all are ready."""
    with ExitStack() as life:
        replicas = [Replica(voices) for _ in range(number)]
        for replica in replicas:
            life.callback(replica.close)
            replica.start()
        for replica in replicas:
            replica.wait_ready()
        yield replicas
