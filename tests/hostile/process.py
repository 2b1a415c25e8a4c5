"""A server in a process of its own: what it holds can be measured, and no test holds it up."""

import resource
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from tests.entrypoints.http.fake import FakeBackend, Served

MIB = 1 << 20
MAX_BODY_BYTES = 96 * MIB
SERVER = f"""
from collections import deque

from sglang_omni.entrypoints.http.transport.uvicorn_server import run, freeze_gc, create_web_server
from sglang_omni.entrypoints.http.app import create_app
from sglang_omni.entrypoints.cli.serve import bind_socket
from tests.entrypoints.http.fake import FakeBackend

FakeBackend.max_body_bytes = {MAX_BODY_BYTES}
backend = FakeBackend()
# It shall keep nothing of what it is asked.
backend.requests = backend.cloner.cloned = deque(maxlen=0)
app = create_app(backend)
# As the server does once it is loaded.
freeze_gc()
with bind_socket("127.0.0.1", 0) as listener:
    print(listener.getsockname()[1], flush=True)
    run(create_web_server(app, "critical", 1).serve(sockets=[listener]))
"""


@dataclass(frozen=True)
class Process:
    """A server, and the process it runs in."""

    served: Served
    pid: int

    def resident_bytes(self) -> int:
        """Memory of the process."""
        pages = int(Path(f"/proc/{self.pid}/statm").read_text().split()[1])
        return pages * resource.getpagesize()


@contextmanager
def server_process() -> Iterator[Process]:
    """Serve a fake backend with default limits."""
    command = [sys.executable, "-c", SERVER]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as running:
        assert running.stdout is not None
        url = f"http://127.0.0.1:{int(running.stdout.readline())}"
        try:
            yield Process(Served(url, FakeBackend()), running.pid)
        finally:
            running.terminate()
