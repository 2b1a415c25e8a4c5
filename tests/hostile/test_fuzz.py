"""Bytes that nobody means: the server answers or closes, and goes on serving everybody else.

`python -m tests.hostile.fuzz --seconds 3600` does the same for longer, and says how to repeat it.
"""

from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest

from tests.entrypoints.http.fake import Served
from tests.hostile.clients import bystander
from tests.hostile.fuzz import schemas
from tests.hostile.fuzz.campaign import TARGETS, Fuzzed, case_of, fuzzed, play_all, run_target
from tests.hostile.fuzz.case import CORPUS, Case, read_case

# Waits are judged.
pytestmark = pytest.mark.alone
SECONDS = 15.0
SEED = 1


@pytest.fixture(scope="module")
def server() -> Iterator[Fuzzed]:
    with fuzzed() as running:
        yield running


def test_what_once_broke_the_server_does_not_any_more(server: Fuzzed) -> None:
    paths = sorted(CORPUS.glob("*.case"))
    assert {read_case(path).target for path in paths} == set(TARGETS)
    with bystander(server.served):
        for _ in range(3):
            found = play_all(server, [read_case(path) for path in paths])
            assert found == []


@pytest.mark.parametrize("target", TARGETS)
def test_a_case_is_the_same_in_every_run_and_kept_whole(target: str, tmp_path: Path) -> None:
    case = case_of(target, SEED, 7)
    assert case == case_of(target, SEED, 7) != case_of(target, SEED, 8)
    path = tmp_path / "one.case"
    case.write(path)
    assert read_case(path) == case


def test_a_fault_is_found_and_its_case_named(
    server: Fuzzed, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What is looked at, the server's log and its statuses, shows a fault where there is one."""
    guilty, innocent = Case("schemas", "chat", b"{}"), Case("schemas", "chat", b"[]")
    log = tmp_path / "log"
    log.write_bytes(b"")

    def play(served: Served, case: Case) -> None:
        if case == guilty:
            log.write_bytes(log.read_bytes() + b"Traceback (most recent call last):\n")

    monkeypatch.setitem(TARGETS, "schemas", replace(TARGETS["schemas"], play=play))
    watched = replace(server, log=log, log_place=0)
    found = play_all(watched, [innocent, guilty, innocent])
    assert [case for case, _ in found] == [guilty]
    monkeypatch.undo()
    monkeypatch.setattr(schemas, "ALLOWED", frozenset({200}))
    ((case, finding),) = play_all(server, [guilty])
    assert case == guilty
    assert "400" in str(finding)


@pytest.mark.long
@pytest.mark.parametrize("target", TARGETS)
def test_the_server_holds_against_what_nobody_means(target: str) -> None:
    with fuzzed() as fresh:
        report = run_target(fresh, target, SEED, SECONDS)
    assert report.found == [], report.found[0].finding
    assert report.num_cases >= 128
