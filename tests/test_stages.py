"""The stages of `ci/` leave no test out, and name nothing that is not there."""

import os
import re
import subprocess
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
SCRIPT = (ROOT / "ci" / "stage.sh").read_text(encoding="utf-8")


def test_every_path_of_a_stage_exists() -> None:
    named = set(re.findall(r"\b((?:tests|ci)/[\w/]+(?:\.\w+)?)", SCRIPT))
    assert len(named) >= 8
    assert {name for name in named if not (ROOT / name).exists()} == set()


def test_every_gpu_test_is_in_a_stage() -> None:
    stages = re.findall(r"test -m gpu ([^\"]*)", SCRIPT)
    folders = [folder for stage in stages for folder in stage.split()]
    marked = [
        path.relative_to(ROOT).as_posix()
        for path in (ROOT / "tests").rglob("test_*.py")
        if re.search(r"mark\.gpu\b", path.read_text(encoding="utf-8"))
    ]
    assert marked
    assert [path for path in marked if not path.startswith(tuple(folders))] == []


def test_an_unknown_stage_is_refused_and_none_prints_them() -> None:
    script = str(ROOT / "ci" / "stage.sh")
    assert subprocess.run([script, "everything"], capture_output=True).returncode == 2
    shown = subprocess.run([script], capture_output=True, text=True)
    assert shown.returncode == 2
    described = set(re.findall(r"^#   ([\w, ]+?)  ", shown.stdout, re.MULTILINE))
    names = {name for group in described for name in group.split(", ")}
    assert names == set(re.findall(r"^(\w+)\)", SCRIPT, re.MULTILINE))


@pytest.mark.parametrize(
    ("asked", "checked", "gates", "status", "says"),
    [
        (0, 0, True, 0, "gates: 0"),
        (0, 1, True, 1, "gates: 1"),
        (0, 2, True, 1, "gates: 2"),
        (0, 3, True, 0, "gates: 3"),
        (1, 0, True, 1, "gates: 0"),
        (0, 0, False, 0, "not checked: no gates in"),
    ],
)
def test_a_bench_fails_with_its_gates_and_not_for_another_machine(
    asked: int, checked: int, gates: bool, status: int, says: str, tmp_path: Path
) -> None:
    python, table = tmp_path / "python", tmp_path / "gates.json"
    python.write_text(
        f"""#!/bin/sh
case $2 in
benchmarks.evaluation.evaluate) exit {asked} ;;
benchmarks.evaluation.gates) echo "gates: {checked}"; exit {checked} ;;
esac
"""
    )
    python.chmod(0o755)
    if gates:
        table.touch()
    settings = {"PYTHON": str(python), "URL": "http://127.0.0.1:1", "GATES": str(table)}
    done = subprocess.run(
        [ROOT / "ci" / "bench.sh", tmp_path / "out"],
        env={**os.environ, **settings},
        capture_output=True,
        text=True,
    )
    assert (done.returncode, says in done.stdout) == (status, True), done.stdout + done.stderr
