"""A gate is the worst of five runs with slack, for one protocol on one system."""

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from benchmarks.evaluation import gates
from benchmarks.evaluation.gates import SystemMismatch, calibrate, check, measure_growth
from benchmarks.evaluation.report.figures import Figure
from tests.benchmarks.evaluation.test_report import FIGURE, run_file

TTFT = replace(FIGURE, measure="TTFT, p95", unit="ms", value=100.0)
RUNS: list[list[Figure]] = [
    [replace(FIGURE, value=rate), replace(TTFT, value=time)]
    for rate, time in ((10.0, 90.0), (9.0, 110.0), (11.0, 100.0), (10.5, 95.0), (9.5, 105.0))
]


def test_the_gate_lies_behind_the_worst_run_on_the_worse_side() -> None:
    rate, time = calibrate(RUNS, slack=0.1)
    assert (rate.worst, time.worst) == (9.0, 110.0)
    assert rate.limit == pytest.approx(8.1)
    assert time.limit == pytest.approx(121.0)
    assert rate.variation == pytest.approx(0.079, abs=1e-3)
    assert rate.is_met(8.2)
    assert not rate.is_met(8.0)
    assert time.is_met(120.0)
    assert not time.is_met(122.0)


def test_a_failed_request_fails_where_there_was_none() -> None:
    failed = replace(FIGURE, measure="failed", unit="", value=0.0)
    (gate,) = calibrate([[failed]] * 5)
    assert gate.is_met(0.0)
    assert not gate.is_met(1.0)


def test_what_nothing_can_fail_is_no_gate() -> None:
    right = replace(FIGURE, measure="accuracy", unit="%", value=0.0)
    heard = replace(FIGURE, measure="word errors, corpus", unit="%", value=100.0)
    assert calibrate([[right, heard]] * 5) == []
    some = [replace(right, value=50.0), replace(heard, value=47.0)]
    assert [gate.limit for gate in calibrate([some] * 5)] == pytest.approx([45.0, 51.7])


def test_fewer_runs_or_others_make_no_gate() -> None:
    with pytest.raises(ValueError, match="too few"):
        calibrate(RUNS[:4])
    other = [replace(one, hardware="another card") for one in RUNS[0]]
    with pytest.raises(SystemMismatch):
        calibrate([*RUNS[:4], other])
    with pytest.raises(SystemMismatch, match="on a card"):
        list(check(calibrate(RUNS), other))


def suite(folder: Path, made: dict[str, Any]) -> str:
    """A folder with the folder of a run."""
    (folder / "tts").mkdir(parents=True)
    (folder / "tts" / "run.json").write_text(json.dumps(made), encoding="utf-8")
    return str(folder)


def slower(by: dict[str, float]) -> dict[str, Any]:
    """A run whose loads have so much of their rate."""
    made = run_file("seed-tts-en-streamed")
    for row in made["summary"]:
        row["over_repeats"]["requests_per_s"]["mean"] *= by.get(row["load"], 1.0)
    return made


@pytest.fixture
def calibrated(tmp_path: Path) -> list[str]:
    """Five equal runs."""
    return [suite(tmp_path / str(n), run_file("seed-tts-en-streamed")) for n in range(5)]


def test_the_commands_calibrate_and_check(
    calibrated: list[str], tmp_path: Path, capsys: Any
) -> None:
    stored = tmp_path / "new" / "gates.json"
    assert gates.main(["calibrate", *calibrated, "--out", str(stored)]) == 0
    assert gates.main(["check", calibrated[0], "--gates", str(stored)]) == 0
    half = suite(tmp_path / "half", slower({"closed/1": 0.5, "closed/4": 0.5}))
    capsys.readouterr()
    assert gates.main(["check", half, "--gates", str(stored)]) == 1
    failed = [line for line in capsys.readouterr().out.splitlines() if line.startswith("FAILED")]
    assert len(failed) == 2
    assert all("requests" in line for line in failed)
    other = suite(tmp_path / "other", run_file("mmmu-50"))
    assert gates.main(["check", other, "--gates", str(stored)]) == 2
    assert gates.main(["check", str(tmp_path / "none"), "--gates", str(stored)]) == 2


def test_steady_gates_let_a_slow_machine_pass_and_no_lost_batching(
    calibrated: list[str], tmp_path: Path, capsys: Any
) -> None:
    stored = tmp_path / "gates.json"
    assert gates.main(["calibrate", *calibrated, "--steady", "--out", str(stored)]) == 0
    measures = {gate["measure"] for gate in json.loads(stored.read_text())["gates"]}
    assert measures == {"failed", gates.GROWTH}
    half = suite(tmp_path / "half", slower({"closed/1": 0.5, "closed/4": 0.5}))
    assert gates.main(["check", half, "--gates", str(stored)]) == 0
    serial = suite(tmp_path / "serial", slower({"closed/4": 0.5}))
    capsys.readouterr()
    assert gates.main(["check", serial, "--gates", str(stored)]) == 1
    (failed,) = [line for line in capsys.readouterr().out.splitlines() if "FAILED" in line]
    assert gates.GROWTH in failed
    assert "closed/4" in failed


def test_what_varies_from_run_to_run_is_no_steady_gate(tmp_path: Path, capsys: Any) -> None:
    made = (slower({"closed/4": 1.0 - 0.1 * n}) for n in range(5))
    runs = [suite(tmp_path / str(n), one) for n, one in enumerate(made)]
    stored = tmp_path / "gates.json"
    assert gates.main(["calibrate", *runs, "--steady", "--out", str(stored)]) == 0
    assert {gate["measure"] for gate in json.loads(stored.read_text())["gates"]} == {"failed"}
    assert "no gate, varies by 19.8%: " in capsys.readouterr().out
    assert gates.main(["calibrate", *runs, "--out", str(stored)]) == 0
    assert gates.GROWTH in stored.read_text()


def test_a_run_of_another_machine_is_not_checked_and_no_calibration(
    calibrated: list[str], tmp_path: Path, capsys: Any
) -> None:
    stored = tmp_path / "gates.json"
    assert gates.main(["calibrate", *calibrated, "--out", str(stored)]) == 0
    elsewhere = run_file("seed-tts-en-streamed", environment={"device": "H200", "devices": "1"})
    moved = suite(tmp_path / "moved", elsewhere)
    assert gates.main(["check", moved, "--gates", str(stored)]) == 3
    assert "for 0 x cpu, the run is from 1 x H200" in capsys.readouterr().out
    assert gates.main(["calibrate", *calibrated, moved, "--out", str(stored)]) == 2


def test_growth_is_by_the_rate_of_one_client_in_the_same_protocol() -> None:
    loads = (1, 2.0), (4, 3.0), (2, 2.5)
    rates = [replace(FIGURE, load=f"closed/{n}", value=v) for n, v in loads]
    (found,) = measure_growth([*rates, replace(FIGURE, load="open/2"), TTFT])
    assert (found.load, found.value) == ("closed/4", 1.5)
    assert list(measure_growth([rates[0], replace(rates[1], protocol="another")])) == []
