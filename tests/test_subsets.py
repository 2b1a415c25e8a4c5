"""Every test is in one subset, and a run says which goldens it lacked."""

from pathlib import Path

import pytest

from tests.testing import golden
from tests.testing.golden import FULL_SET, summarize_missing
from tests.testing.subsets import SUBSETS, is_below, is_left_out, subset_of

ROOT = Path(__file__).parents[1]
EXCLUSIVE = {*SUBSETS.values(), "soak", "long", "interpreted", "extended"}


@pytest.mark.parametrize("place", SUBSETS)
def test_every_place_with_a_subset_exists(place: str) -> None:
    assert (ROOT / place).exists()


@pytest.mark.parametrize(
    ("path", "subset"),
    [
        ("tests/media/test_wav.py", "unit"),
        ("tests/models/ming/speech/test_vae.py", "parity"),
        ("tests/engines/runtime/test_process.py", "unit"),
        ("tests/server/test_server.py", "server"),
        ("tests/server/test_playground.py", "browser"),
        ("tests/serving/test_engine_config.py", "unit"),
        ("tests/faults/test_start.py", "faults"),
        ("tests/faults/test_load.py", "unit"),
        ("tests/cookbook/test_pack.py", "programs"),
        ("tests/benchmarks/serving/test_chats.py", "programs"),
        ("tests/benchmarks/evaluation/test_tasks.py", "unit"),
    ],
)
def test_the_longest_path_decides(path: str, subset: str) -> None:
    assert subset_of(path) == subset


def test_a_folder_is_not_a_prefix_of_its_neighbour() -> None:
    assert is_below("tests/server/test_server.py", "tests/server")
    assert not is_below("tests/serving/test_engine_config.py", "tests/serv")


def test_files_of_an_excluded_subset_are_left_out() -> None:
    path = "tests/cookbook/test_pack.py"
    assert is_left_out(path, "not programs and not extended")
    assert is_left_out(path, "not extended and not programs")
    for expression in ("", "programs", "extended", "not programs_of_others"):
        assert not is_left_out(path, expression)
    assert not is_left_out("tests/media/test_wav.py", "not programs and not extended")


def test_each_collected_test_has_one_subset(request: pytest.FixtureRequest) -> None:
    for item in request.session.items:
        marks = {mark.name for mark in item.iter_markers()}
        assert len(marks & EXCLUSIVE) == 1, item.nodeid


def test_a_missing_golden_is_counted(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(golden, "ROOTS", (tmp_path,))
    monkeypatch.setattr(golden, "missing_cases", set())
    assert golden.cases("e2e", "tts_", required=False) == []
    assert golden.missing_cases == {name for name in golden.ALL_CASES if "e2e/tts_" in name}
    assert golden.missing_cases


def test_a_run_without_missing_goldens_says_nothing() -> None:
    assert summarize_missing(0, 0) == ""
    assert summarize_missing(2, 61).startswith("goldens: 2 tests skipped and 61 cases left out")


@pytest.mark.skipif(not FULL_SET.exists(), reason="needs the full set of goldens")
def test_the_list_of_cases_is_that_of_the_full_set() -> None:
    areas = {name.partition("/")[0] for name in golden.ALL_CASES}
    stored = {
        f"{area}/{path.parent.name}"
        for area in areas
        for path in (FULL_SET / area).glob("*/case.json")
    }
    assert sorted(stored) == golden.ALL_CASES
