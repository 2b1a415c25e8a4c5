"""A Redis server on a loopback port, which a test may stop, kill and start again."""

import shutil
import signal
import socket
import subprocess
from pathlib import Path

import pytest

from tests.server.running import free_port, wait_until

PATHS = "/usr/local/sbin:/usr/sbin:/usr/local/bin:/usr/bin:/bin"
START_S = 10


def find_redis() -> str:
    """Return the path of Redis, or skip the test, naming what is not there."""
    pytest.importorskip("redis", reason="there is no Python package redis here")
    path = shutil.which("redis-server", path=PATHS)
    if path is None:
        pytest.skip("there is no redis-server here")
    return path


class RedisServer:
    """A Redis that keeps its port over restarts, and nothing else."""

    def __init__(self, folder: Path, *arguments: str, tls: bool = False) -> None:
        self._program, self._folder = find_redis(), folder
        self.port = free_port()
        self._arguments = [
            *(("--port", "0", "--tls-port", str(self.port)) if tls else ("--port", str(self.port))),
            *("--bind", "127.0.0.1", "--save", "", "--appendonly", "no", "--dir", str(folder)),
            *arguments,
        ]
        self._process: subprocess.Popen[bytes] | None = None

    @property
    def url(self) -> str:
        return f"redis://127.0.0.1:{self.port}/0"

    def start(self) -> None:
        """Start it, and wait until it listens."""
        with (self._folder / "redis.log").open("a") as log:
            self._process = subprocess.Popen(
                [self._program, *self._arguments], stdout=log, stderr=subprocess.STDOUT
            )
        wait_until(self._listens, START_S, "Redis listens")

    def _listens(self) -> bool:
        assert self._process is not None
        assert self._process.poll() is None, (self._folder / "redis.log").read_text()
        try:
            socket.create_connection(("127.0.0.1", self.port), 1).close()
        except OSError:
            return False
        return True

    def kill(self) -> None:
        """End it at once, with everything in it."""
        if self._process is not None:
            self._process.kill()
            self._process.wait()
            self._process = None

    def pause(self) -> None:
        """Let it keep its connections and not answer."""
        assert self._process is not None
        self._process.send_signal(signal.SIGSTOP)

    def resume(self) -> None:
        assert self._process is not None
        self._process.send_signal(signal.SIGCONT)
