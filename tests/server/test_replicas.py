"""Two talkers: one that is killed takes its own requests along; speech is served all the while."""

import os
import signal
import time
from collections.abc import Iterator

import httpx
import pytest

from tests.server.running import HTTP, RunningServer, call, run_server, wait_until
from tests.testing.golden import TINY

pytestmark = pytest.mark.extended

COMES_BACK_WITHIN_S = 150.0
FAILS_WITHIN_S = 5.0
LONG_TEXT = " ".join(["The mill stands by the river, and the river runs past the mill."] * 60)
SPEECH = {"model": "ming-omni", "voice": "DB30", "input": LONG_TEXT, "stream_format": "sse"}
TALKERS = ("talker", "talker-1")


@pytest.fixture(scope="module")
def pair() -> Iterator[RunningServer]:
    command = (
        "-m",
        "sglang_omni",
        "serve",
        "--version",
        "v1",
        "--model-path",
        str(TINY),
    )
    with run_server(*command, "--text-only", "--talker.replicas", "2", ready="/ready") as server:
        yield server


def active(server: RunningServer) -> list[float]:
    return [server.engine(name)["counters"].get("active_slots", 0) for name in TALKERS]


def test_one_of_two_talkers_is_killed_under_load(pair: RunningServer) -> None:
    url = f"{pair.api}/audio/speech"
    calls = []
    for number in range(4):
        calls.append(call(url, {**SPEECH, "seed": number}))
        wait_until(lambda: calls[-1][0].started, 60, "it speaks")
    wait_until(lambda: active(pair) == [2, 2], 20, "each talker has two")
    first = pair.engine("talker")
    killed_at = time.monotonic()
    os.kill(first["pid"], signal.SIGKILL)

    wait_until(lambda: sum(one.ended_at > 0 for one, _ in calls) >= 2, 20, "its requests fail")
    failed = [one for one, _ in calls if one.ended_at]
    assert len(failed) == 2
    assert all(one.failed_visibly for one in failed)
    assert max(one.ended_at for one in failed) - killed_at < FAILS_WITHIN_S
    # Degraded, not down: requests go to the other.
    assert pair.ready_status() == 200
    assert pair.engine("talker")["state"] == "restarting"
    small = {**SPEECH, "input": "Hello.", "stream_format": "audio"}
    assert httpx.post(url, json=small, timeout=60).status_code == 200

    states = {name: pair.engine(name) for name in TALKERS}
    assert [states[name]["restarts"] for name in TALKERS[1:]] == [0]
    wait_until(lambda: pair.engine("talker")["state"] == "ready", COMES_BACK_WITHIN_S, "back")
    assert pair.engine("talker")["restarts"] == first["restarts"] + 1
    for one, thread in calls:
        thread.join(120)
        if one not in failed:
            assert one.status == 200
            assert "speech.audio.done" in one.text
    metrics = HTTP.get(f"{pair.url}/metrics").text
    for replica, restarts in (("0", 1), ("1", 0)):
        labels = f'{{engine="talker",node="",replica="{replica}"}}'
        assert f"sgl_omni_engine_restarts_total{labels} {restarts}.0" in metrics
