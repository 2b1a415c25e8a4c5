"""The simulation agrees with what was measured on one H200, and plans from it."""

import json
import sys
from pathlib import Path

import pytest

from benchmarks import cluster_sim
from benchmarks.cluster.agreement import WITHIN, compare
from benchmarks.cluster.planning import find_capacity, known_plans
from benchmarks.cluster.times import StepTimes, serving_row
from benchmarks.cluster.workload import Habits, TurnRecord, read_trace


def test_every_measured_figure_is_met_within_15_percent() -> None:
    compared = compare()
    assert WITHIN == 0.15
    assert len(compared) == 22
    assert [one for one in compared if abs(one.off) > WITHIN] == []


def test_more_callers_are_carried_where_first_audio_may_come_later() -> None:
    plan, *_ = known_plans()
    early, late = (find_capacity(plan, limit, Habits(), 40.0) for limit in (0.25, 0.8))
    assert early is not None
    assert late is not None
    assert early.callers < late.callers
    assert early.outcome.first_audio[2] <= 0.25
    assert early.groups(1 + early.callers) == 2


def test_nothing_is_planned_for_what_no_caller_gets() -> None:
    assert find_capacity(known_plans()[0], 0.01, Habits(), 10.0) is None


def test_no_step_is_invented_beyond_the_measured_ones() -> None:
    times = StepTimes((1, 8), (0.001, 0.008))
    assert times.at(4) == pytest.approx(0.004)
    with pytest.raises(ValueError, match="at most 8"):
        times.at(9)
    with pytest.raises(KeyError, match="closed 3"):
        serving_row("speech_h200.json", "closed", 3)


def test_gaps_are_what_a_listener_waits_for() -> None:
    record = TurnRecord(0.0, chunks=[1.0, 1.1, 1.9])
    # Two chunks of 0.32 s play until 1.64.
    assert record.gap_s(0.32) == pytest.approx(0.26)
    assert TurnRecord(0.0, chunks=[1.0, 1.1, 1.6]).gap_s(0.32) == 0


def test_a_trace_is_answered_and_its_lines_are_checked(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    file, out = tmp_path / "arrivals.jsonl", tmp_path / "out.json"
    turn = {"prompt": 100, "tokens": 30, "speech_s": 7.0}
    file.write_text("\n".join(json.dumps({"at": second, **turn}) for second in range(5)))
    command = ["cluster_sim", "--out", str(out), "trace", "--file", str(file)]
    monkeypatch.setattr(sys, "argv", command)
    assert cluster_sim.main() == 0
    assert "5 of 5 turns" in capsys.readouterr().out
    assert json.loads(out.read_text())["groups"][0]["turns"] == 5
    file.write_text('{"at": 1, "promt": 5, "tokens": 1}')
    with pytest.raises(ValueError, match=r"arrivals\.jsonl:1: .*promt"):
        read_trace(file)
