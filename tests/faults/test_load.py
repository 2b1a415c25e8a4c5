"""Soaks and overload: nothing is lost, nothing is left, and the admitted hardly notice."""

import pytest

from benchmarks.serving.overload import measure, synthetic_server
from benchmarks.serving.soak import soak
from tests.server.running import RunningServer


def test_a_short_soak_of_a_synthetic_server_leaves_it_as_it_was() -> None:
    pace = ("--step-ms", "2", "--stream-ms", "0.1", "--patches", "3")
    with synthetic_server("--slots", "8", "--queue-length", "8", *pace) as url:
        result = soak(url, requests=150, clients=8, speech_only=True)
    assert result["lost"] == []
    assert result["complaints"] == []
    assert {"completed", "left", "refused"} <= result["outcomes"].keys()


@pytest.mark.soak
def test_a_soak_of_a_whole_server_leaves_it_as_it_was(victim: RunningServer) -> None:
    result = soak(victim.url, requests=500, clients=8)
    print(result)
    assert result["lost"] == []
    assert result["complaints"] == []
    assert result["outcomes"]["completed"] > 200


@pytest.mark.soak
def test_at_four_times_its_capacity_a_server_serves_the_admitted_as_well() -> None:
    result = measure(seconds=20, times=4, slots=8, queue=8)
    print(result)
    over = result["overload"]
    assert over["failed"] == 0
    assert over["refused"] > over["admitted"]
    assert result["ttfa_p95_ratio"] <= 1.5
    assert over["refusal_s"][1] < 0.1
    assert not any(result["left"].values())
