"""How long the phases of a start took."""

import pytest

from sglang_omni.engines.runtime.start_phases import FIRST_PHASE, StartPhase, StartTimeline


def test_phases_follow_each_other_and_add_up() -> None:
    timeline = StartTimeline.start(100.0).enter_phase("loading", 103.0)
    phases = timeline.enter_phase("warming up", 103.5).finish(110.0)
    assert phases == (
        StartPhase(FIRST_PHASE, 3.0),
        StartPhase("loading", 0.5),
        StartPhase("warming up", 6.5),
    )
    assert sum(phase.seconds for phase in phases) == pytest.approx(10.0)


def test_an_engine_that_reports_nothing_has_one_phase() -> None:
    assert StartTimeline.start(1.0).finish(2.0) == (StartPhase(FIRST_PHASE, 1.0),)
