"""Two servers of the same options on one machine: neither disturbs the other, however one ends."""

import os
import signal

from sglang_omni.engines.runtime.shm_cleanup import SHM_DIR
from tests.faults.conftest import COMMAND
from tests.server.running import HTTP, RunningServer, run_server, wait_until


def speaks(server: RunningServer) -> bool:
    body = {"model": "ming-omni", "input": "A river.", "seed": 1}
    return HTTP.post(f"{server.api}/audio/speech", json=body, timeout=60).status_code == 200


def test_a_killed_server_takes_nothing_of_its_neighbour_along() -> None:
    before = set(SHM_DIR.iterdir())
    with run_server(*COMMAND, ready="/ready") as stays:
        mine = set(SHM_DIR.iterdir()) - before
        with run_server(*COMMAND, ready="/ready") as goes:
            assert speaks(stays)
            assert speaks(goes)
            os.kill(goes.pid, signal.SIGKILL)
            wait_until(
                lambda: set(SHM_DIR.iterdir()) - before <= mine, 30, "its shared memory is gone"
            )
        assert speaks(stays)
        assert stays.ready_status() == 200
        assert all(engine["restarts"] == 0 for engine in engines(stays).values())
        assert mine <= set(SHM_DIR.iterdir())
        metrics = HTTP.get(f"{stays.url}/metrics").text
        assert "sglang:" in metrics, "its counters are still there"


def engines(server: RunningServer) -> dict[str, dict[str, object]]:
    answer: dict[str, dict[str, object]] = HTTP.get(f"{server.url}/health").json()["engines"]
    return answer
