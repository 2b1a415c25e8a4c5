"""One operating-system process: spawn, read its output, kill its process group, and reap."""

import asyncio
import os
import signal
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Mapping
from contextlib import suppress
from typing import IO, Protocol

from sglang_omni.engines.runtime.oom import count_oom_kills
from sglang_omni.engines.runtime.shm_cleanup import iter_group_pids

_MAX_LINE_BYTES = 64 << 10
_DRAIN_S = 1.0
_GROUP_DEATH_S = 5.0
_POLL_S = 0.005

ENGINE_MODULE = "sglang_omni.engines.runtime.engine_main"


class LineReceiver(Protocol):
    """Receives what a process prints, in a thread of its own."""

    def handle_line(self, line: str) -> None:
        """Take the next line."""

    def close(self) -> None:
        """Learn that there are no more lines."""


class Subprocess:
    """An engine's process, the leader of its own session and process group.

    Create it on the event loop's thread, and let that thread live as long as the server: for the
    kernel, the parent of a process dies with the thread that spawned it (`PR_SET_PDEATHSIG`).

    Attributes:
        sock: The server's end of the socketpair.
        exited: Resolves with the return code once the process is reaped, its whole group killed and
            its output read.

    Raises:
        OSError: The process cannot be started.
    """

    def __init__(
        self,
        name: str,
        env: Mapping[str, str],
        output: LineReceiver,
        module: str = ENGINE_MODULE,
    ) -> None:
        """Start a process that runs `module` and whose lines go to `output`."""
        self._name = name
        self._output = output
        self._loop = asyncio.get_running_loop()
        self._reap_lock = threading.Lock()
        self._oom_kills = count_oom_kills()
        self._ran_out_of_memory = False
        self.exited: asyncio.Future[int] = self._loop.create_future()
        self.sock, child_sock = socket.socketpair()
        try:
            with child_sock:
                self._process = _spawn(module, child_sock.fileno(), env)
        except OSError:
            self.sock.close()
            raise
        try:
            self._output_thread = self._start_thread("output", self._read_output)
            self._start_thread("exit", self._wait_for_exit)
        except RuntimeError as error:  # No thread can be started.
            self.sock.close()
            self.kill()
            self._process.wait()
            raise OSError(str(error)) from error

    @property
    def pid(self) -> int:
        """Return the process id, which is also the id of its group."""
        return self._process.pid

    @property
    def exit_reason(self) -> str:
        """Return how the process ended, once `exited` has resolved. It continues a name."""
        code = self.exited.result()
        end = f"was killed by {signal.Signals(-code).name}" if code < 0 else f"exited with {code}"
        if self._ran_out_of_memory:
            return f"{end}: out of memory (kernel OOM killer); raise the server's memory limit"
        return f"{end}: /dev/shm or another tmpfs may be full" if code == -signal.SIGBUS else end

    def kill(self) -> None:
        """Kill the process and its group. Does nothing once the process has ended."""
        with self._reap_lock:
            # A reaped process id may belong to another process.
            if self._process.returncode is None:
                os.killpg(self.pid, signal.SIGKILL)

    def _start_thread(self, role: str, run: Callable[[], None]) -> threading.Thread:
        thread = threading.Thread(target=run, name=f"{self._name}-{role}", daemon=True)
        thread.start()
        return thread

    def _wait_for_exit(self) -> None:
        os.waitid(os.P_PID, self.pid, os.WEXITED | os.WNOWAIT)
        with self._reap_lock:
            # While the process is a zombie, its group id is not reused, so killing it is safe.
            os.killpg(self.pid, signal.SIGKILL)
            code = self._process.wait()
        self._ran_out_of_memory = count_oom_kills() > self._oom_kills
        _wait_for_group(self.pid)
        self._output_thread.join(_DRAIN_S)
        with suppress(RuntimeError):  # The loop is already closed.
            self._loop.call_soon_threadsafe(self.exited.set_result, code)

    def _read_output(self) -> None:
        stream = self._process.stdout
        assert stream is not None
        with stream:
            for line in iter(lambda: _read_line(stream), None):
                self._output.handle_line(line)
        self._output.close()


def _spawn(module: str, descriptor: int, env: Mapping[str, str]) -> subprocess.Popen[bytes]:
    # -P: do not import from the server's current folder.
    entry = [sys.executable, "-P", "-m", module]
    return subprocess.Popen(
        [*entry, str(descriptor), str(os.getpid())],
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        env={**os.environ, "PYTHONUNBUFFERED": "1", **env},
        pass_fds=(descriptor,),
        start_new_session=True,
    )


def _wait_for_group(pgid: int) -> None:
    """Wait until every process of a killed group is gone, which frees its device memory."""
    deadline = time.monotonic() + _GROUP_DEATH_S
    while any(iter_group_pids(pgid)) and time.monotonic() < deadline:
        time.sleep(_POLL_S)


def _read_line(stream: IO[bytes]) -> str | None:
    """Return the next line as a terminal would show it, or None at the end."""
    raw = stream.readline(_MAX_LINE_BYTES)
    if not raw:
        return None
    # A progress bar rewrites its line with carriage returns. Keep its last state only.
    return raw.rstrip(b"\r\n").rpartition(b"\r")[2].decode(errors="replace")
