"""An administrator profiles an engine of a running server, SGLang's own profiler included."""

import gzip
import json
import time
from pathlib import Path

import httpx
import pytest

from tests.faults.conftest import ADMIN_KEY
from tests.faults.test_engines import RECOVERY_S, works
from tests.server.running import RunningServer, wait_until

WRITTEN_S = 60.0


def order(server: RunningServer, engine: str, what: str) -> httpx.Response:
    address = f"{server.url}/admin/profile/{engine}/{what}"
    return httpx.post(address, headers={"Authorization": f"Bearer {ADMIN_KEY}"})


def traces(folder: Path) -> list[Path]:
    """Complete traces: what is still being written cannot be read."""

    def complete(file: Path) -> bool:
        try:
            return bool(names_of(file))
        except (OSError, EOFError, ValueError):
            return False

    return [file for file in folder.glob("*.json*") if complete(file)]


def names_of(file: Path) -> set[str]:
    data = file.read_bytes()
    text = gzip.decompress(data) if file.suffix == ".gz" else data
    return {event.get("name", "") for event in json.loads(text)["traceEvents"]}


@pytest.mark.parametrize(
    ("engine", "needs"), [("thinker", "text"), ("talker", "speech"), ("encoders", "picture")]
)
def test_a_profile_of_a_running_engine_shows_its_operators(
    victim: RunningServer, engine: str, needs: str
) -> None:
    wait_until(lambda: victim.ready_status() == 200, RECOVERY_S, "ready before")
    before = victim.engine(engine)
    started = order(victim, engine, "start")
    assert started.status_code == 202
    folder = Path(started.json()["folder"])
    time.sleep(1)  # The order is taken between two steps, of which an idle engine makes none.
    assert works(victim, needs)
    assert order(victim, engine, "stop").status_code == 202
    wait_until(lambda: bool(traces(folder)), WRITTEN_S, "a trace")
    names = {name for file in traces(folder) for name in names_of(file)}
    assert any(name.startswith("aten::") and "mm" in name for name in names)
    assert works(victim, needs)
    after = victim.engine(engine)
    assert (after["pid"], after["restarts"]) == (before["pid"], before["restarts"])


def test_only_an_administrator_may_profile(victim: RunningServer) -> None:
    refused = httpx.post(f"{victim.url}/admin/profile/thinker/start")
    assert refused.status_code == 401
