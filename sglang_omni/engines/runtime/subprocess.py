"""One operating-system process: spawned, heard, killed with everything it started, and reaped."""

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
from typing import IO

from sglang_omni.engines.runtime.oom import count_oom_kills
from sglang_omni.engines.runtime.process_output import EngineOutput, OutputRules
from sglang_omni.engines.runtime.shm_cleanup import group_members

_LINE_BYTES = 64 << 10
_DRAIN_S = 1.0
_GROUP_DEATH_S = 5.0
_POLL_S = 0.005


class Subprocess:
    """An engine's process, the leader of its own session and process group.

    Make it on the event loop's thread, and let that thread live as long as the server does: the
    kernel takes the end of the thread that spawned a process for the death of its parent.
    `end` is our end of the socketpair, `output` what it prints. `exited` resolves with the return
    code once the process is reaped, its whole group killed and its last words read. Raises
    `OSError` if it cannot start.
    """

    def __init__(self, name: str, env: Mapping[str, str], rules: OutputRules) -> None:
        self._name = name
        self.output = EngineOutput(name, rules)
        self._loop = asyncio.get_running_loop()
        self._reaping = threading.Lock()
        self._oom_kills = count_oom_kills()
        self._ran_out_of_memory = False
        self.exited: asyncio.Future[int] = self._loop.create_future()
        self.end, theirs = socket.socketpair()
        try:
            with theirs:
                self._process = _spawn(theirs.fileno(), env)
        except OSError:
            self.end.close()
            raise
        try:
            self._pump = self._start_thread("output", self._pump_output)
            self._start_thread("exit", self._wait_for_exit)
        except RuntimeError as error:  # No thread left to attend to it.
            self.end.close()
            self.kill()
            self._process.wait()
            raise OSError(str(error)) from error

    @property
    def pid(self) -> int:
        """The process id, which is also that of its group."""
        return self._process.pid

    @property
    def exit_reason(self) -> str:
        """How it ended, as the end of a sentence; call it once `exited` has resolved."""
        code = self.exited.result()
        end = f"was killed by {signal.Signals(-code).name}" if code < 0 else f"exited with {code}"
        if self._ran_out_of_memory:
            return f"{end}: memory ran out, and the kernel killed for it; allow the server more"
        return f"{end}: perhaps a file system of memory is full" if code == -signal.SIGBUS else end

    def kill(self) -> None:
        """Kill the process and everything in its group. Harmless once it has ended."""
        with self._reaping:
            # After the reaping its number may be another's.
            if self._process.returncode is None:
                os.killpg(self.pid, signal.SIGKILL)

    def _start_thread(self, what: str, run: Callable[[], None]) -> threading.Thread:
        thread = threading.Thread(target=run, name=f"{self._name}-{what}", daemon=True)
        thread.start()
        return thread

    def _wait_for_exit(self) -> None:
        os.waitid(os.P_PID, self.pid, os.WEXITED | os.WNOWAIT)
        with self._reaping:
            # Still a zombie, it keeps the group's number ours while what it left behind is killed.
            os.killpg(self.pid, signal.SIGKILL)
            code = self._process.wait()
        self._ran_out_of_memory = count_oom_kills() > self._oom_kills
        _wait_for_group(self.pid)
        self._pump.join(_DRAIN_S)
        with suppress(RuntimeError):  # The loop closed without waiting for us.
            self._loop.call_soon_threadsafe(self.exited.set_result, code)

    def _pump_output(self) -> None:
        stream = self._process.stdout
        assert stream is not None
        with stream:
            for line in iter(lambda: _read_line(stream), None):
                self.output.take(line)
        self.output.close()


def _spawn(descriptor: int, env: Mapping[str, str]) -> subprocess.Popen[bytes]:
    # -P: the folder the server happens to run in is no place to import from.
    entry = [sys.executable, "-P", "-m", "sglang_omni.engines.runtime.engine_main"]
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
    """Return once every process of a killed group is gone, and with it its device memory."""
    deadline = time.monotonic() + _GROUP_DEATH_S
    while any(group_members(pgid)) and time.monotonic() < deadline:
        time.sleep(_POLL_S)


def _read_line(stream: IO[bytes]) -> str | None:
    """Return the next line as a terminal would leave it standing, or None at the end."""
    raw = stream.readline(_LINE_BYTES)
    if not raw:
        return None
    # A progress bar rewrites its line: only its last state is worth a line of its own.
    return raw.rstrip(b"\r\n").rpartition(b"\r")[2].decode(errors="replace")
