"""SGLang's routers in front of a server: sglang_router, and smg, its successor."""

import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import httpx

from tests.server.running import START_DEADLINE_S, free_port, wait_until


@contextmanager
def run_router(worker: str, log: Path, package: str = "sglang_router") -> Iterator[str]:
    """Run a router over the server at `worker`, and yield its own URL once it is ready."""
    port = free_port()
    url = f"http://127.0.0.1:{port}"
    command = [sys.executable, "-m", f"{package}.launch_router", "--worker-urls", worker]
    command += ["--host", "127.0.0.1", "--port", str(port), "--prometheus-port", str(free_port())]
    with log.open("w") as file:
        router = subprocess.Popen(command, stdout=file, stderr=subprocess.STDOUT)

    def answers() -> bool:
        assert router.poll() is None, log.read_text()
        try:
            return httpx.get(f"{url}/readiness").status_code == 200
        except httpx.HTTPError:
            return False

    try:
        wait_until(answers, START_DEADLINE_S, "the router has a worker")
        yield url
    finally:
        router.terminate()
        router.wait()
