"""However the server itself ends, nothing of it is left: no process and no shared memory."""

import os
import signal
import subprocess
import sys
import tempfile

import psutil
import pytest

from sglang_omni.engines.runtime.shm_cleanup import SHM_DIR, find_mapped_inodes
from tests.faults.conftest import COMMAND
from tests.server.running import HTTP, answers, call, free_port, wait_until

GONE_S = 20.0


@pytest.mark.parametrize("loaded", [False, True], ids=["idle", "loaded"])
@pytest.mark.parametrize(
    "number", [signal.SIGKILL, signal.SIGTERM, signal.SIGINT], ids=lambda number: number.name
)
def test_nothing_is_left_of_a_server_that_ends(number: signal.Signals, loaded: bool) -> None:
    port = free_port()
    url = f"http://127.0.0.1:{port}"
    with tempfile.TemporaryFile("w+") as log:
        root = subprocess.Popen(
            [sys.executable, *COMMAND, "--port", str(port), "--drain-timeout", "2"],
            stdout=log,
            stderr=subprocess.STDOUT,
            env=dict(os.environ),
        )
        try:
            wait_until(lambda: answers(root, log, f"{url}/ready"), 180, "ready")
            body = {"model": "ming-omni", "input": "A river. " * 200, "stream_format": "sse"}
            work = [call(f"{url}/v1/audio/speech", body) for _ in range(3 if loaded else 0)]
            wait_until(lambda: all(made.started for made, _ in work), 30, "the streams have begun")
            engines = HTTP.get(f"{url}/health").json()["engines"].values()
            shared = {inode for engine in engines for inode in find_mapped_inodes(engine["pid"])}
            family = psutil.Process(root.pid).children(recursive=True)
            assert shared
            assert len(family) > 8
            root.send_signal(number)
            root.wait(GONE_S)
        finally:
            root.kill()
        _, alive = psutil.wait_procs(family, timeout=GONE_S)
        assert not alive
        assert [one.name for one in SHM_DIR.iterdir() if one.stat().st_ino in shared] == []
        for made, thread in work:
            thread.join(5)
            assert not thread.is_alive()
            assert made.text
        assert root.returncode == (-number if number is signal.SIGKILL else 0)
