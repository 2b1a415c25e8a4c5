"""Every stage of the path consumes what the synthetic talker makes."""

import shlex

import pytest

from benchmarks.serving import api_path
from benchmarks.serving.api_path import STAGES, measure_http, measure_stage, parse_arguments
from tests.server.running import free_port

pytestmark = [pytest.mark.alone, pytest.mark.extended]

# Sixteen, since the system counts a process's time in hundredths of a second.
SHORT = parse_arguments(
    shlex.split("--out unused --listeners 16 --patches 3 --seconds 1.92 --step-ms 5")
)


@pytest.mark.parametrize("stage", STAGES)
async def test_a_stage_is_measured_by_the_chunk(stage: str) -> None:
    row = await measure_stage(stage, SHORT)
    assert row["stage"] == stage
    assert row["chunks_per_s"] >= 4
    assert row["api_us"] > 0
    assert row["engine_us"] > 0


async def test_the_whole_path_is_measured_without_a_failure(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(api_path, "PORT", free_port())
    row = await measure_http("wav", SHORT)
    assert row["failed"] == 0
    assert row["chunks_per_s"] >= 4
