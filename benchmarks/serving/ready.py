"""Wait for a server that a benchmark has started."""

import contextlib
import subprocess
import time

import httpx


def wait_ready(url: str, process: "subprocess.Popen[bytes]", seconds: float) -> None:
    """Return once the server is ready.

    Raises:
        RuntimeError: The server ends, or is not ready after `seconds`.
    """
    deadline = time.monotonic() + seconds
    while time.monotonic() < deadline and process.poll() is None:
        # The server does not listen yet.
        with contextlib.suppress(httpx.TransportError):
            if httpx.get(f"{url}/ready").status_code == httpx.codes.OK:
                return
        time.sleep(0.1)
    raise RuntimeError(f"the server at {url} is not ready; it ended with {process.poll()}")
