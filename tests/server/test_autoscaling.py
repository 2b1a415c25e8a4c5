"""A server starts talkers while speech waits, and stops them when it is done."""

from collections.abc import Iterator

import pytest

from tests.server.running import HTTP, RunningServer, call, run_server, wait_until
from tests.testing.golden import TINY
from tests.testing.machine import PATIENCE

pytestmark = pytest.mark.extended

TALKERS = ("talker", "talker-1", "talker-2")
NUM_SPEECHES = 6
TEXT = " ".join(["The mill stands by the river, and the river runs past the mill."] * 60)
SPEECH = {"model": "ming-omni", "voice": "DB30", "input": TEXT, "stream_format": "sse"}
GROWS_WITHIN_S, SHRINKS_WITHIN_S = 60.0 * PATIENCE, 60.0 * PATIENCE


@pytest.fixture(scope="module")
def scaled() -> Iterator[RunningServer]:
    command = ("-m", "sglang_omni", "serve", "--version", "v1", "--model-path", str(TINY))
    options = {
        "--talker.place": "local,local,local",
        "--talker.min_replicas": "1",
        "--talker.slots": "2",
        "--autoscaling.upscale_delay_s": "1",
        "--autoscaling.downscale_delay_s": "5",
        "--admission.queue_seconds": "300",
    }
    arguments = [part for option in options.items() for part in option]
    with run_server(*command, "--text-only", *arguments, ready="/ready") as server:
        yield server


def states(server: RunningServer) -> list[str]:
    engines = HTTP.get(f"{server.url}/health").json()["engines"]
    return [engines[name]["state"] for name in TALKERS]


def active(server: RunningServer) -> list[float]:
    return [server.engine(name)["counters"].get("active_slots", 0) for name in TALKERS]


def series(server: RunningServer, name: str) -> dict[str, float]:
    """Return the values of the talkers by the rest of the labels."""
    lines = HTTP.get(f"{server.url}/metrics").text.splitlines()
    start = f'sgl_omni_engine_{name}{{engine="talker",'
    found = [line.removeprefix(start).split() for line in lines if line.startswith(start)]
    return {labels.removeprefix('node="",').rstrip("}"): float(value) for labels, value in found}


def test_speech_that_waits_starts_talkers_and_none_of_it_is_lost(scaled: RunningServer) -> None:
    assert states(scaled) == ["ready", "standby", "standby"]
    assert series(scaled, "up") == {'replica="0"': 1}
    assert series(scaled, "replicas") == {'state="ready"': 1, 'state="standby"': 2}
    assert series(scaled, "slots") == {'replica="0"': 2}

    url = f"{scaled.api}/audio/speech"
    calls = [call(url, {**SPEECH, "seed": number}) for number in range(NUM_SPEECHES)]
    wait_until(
        lambda: scaled.engine("talker")["counters"]["queued"] == NUM_SPEECHES - 2, 20, "it waits"
    )
    wait_until(lambda: states(scaled) == ["ready"] * 3, GROWS_WITHIN_S, "three talkers")
    wait_until(lambda: scaled.engine("talker")["counters"]["queued"] == 0, 20, "admitted")
    wait_until(lambda: active(scaled) == [2, 2, 2], 20, "each talker has two")
    assert series(scaled, "up") == {f'replica="{number}"': 1 for number in range(3)}

    ready_statuses: set[int] = set()
    for one, thread in calls:
        while thread.is_alive():
            ready_statuses.add(scaled.ready_status())
            thread.join(0.5)
        assert one.status == 200
        assert "speech.audio.done" in one.text
    wait_until(
        lambda: states(scaled) == ["ready", "standby", "standby"], SHRINKS_WITHIN_S, "one talker"
    )
    assert ready_statuses == {200}
    assert scaled.ready_status() == 200
    assert series(scaled, "up") == {'replica="0"': 1}
    assert series(scaled, "restarts_total") == {f'replica="{number}"': 0 for number in range(3)}
    assert "talker-2 is added to 1 running: 4 requests wait" in scaled.printed
    small = {**SPEECH, "input": "Hello.", "stream_format": "audio"}
    assert HTTP.post(url, json=small, timeout=60).status_code == 200
