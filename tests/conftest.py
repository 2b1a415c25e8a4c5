"""Settings that hold for every test."""

import gc
import os
import tempfile
from collections.abc import Generator
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import pytest
import torch

from sglang_omni.entrypoints.startup.checkpoint import MING_MINI
from sglang_omni.models.weights_archive import unpack_weights
from tests.testing.golden import FULL_SET_ONLY, TINY, missing_cases, summarize_missing
from tests.testing.parallel import WORKERS, is_worker, unit_of
from tests.testing.subsets import is_left_out, subset_of

TESTS = Path(__file__).parent

torch.set_num_threads(1)
# What engines under test print is kept as long as the tests run.
STATE = tempfile.TemporaryDirectory(prefix="sglang-omni-tests-")
os.environ["XDG_STATE_HOME"] = STATE.name
for checkpoint in (TINY, MING_MINI):
    unpack_weights(checkpoint)

LONG = ("faults", "cluster", "soak", "long", "interpreted")
LONGEST_S = 3600
# What a worker of pytest-xdist reports under this name to the process that prints.
MISSING_CASES = "missing_golden_cases"


# First: pytest itself selects by the markers that are added here.
@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    for item in items:
        # Each test is in one subset: those that take minutes have a marker of their own.
        if not any(map(item.get_closest_marker, ("soak", "long", "interpreted", "extended"))):
            item.add_marker(subset_of(item.path.relative_to(TESTS.parent).as_posix()))
    if not torch.cuda.is_available():
        for item in items:
            if item.get_closest_marker("gpu"):
                item.add_marker(pytest.mark.skip(reason="needs a CUDA device"))
    for item in items:
        if any(map(item.get_closest_marker, LONG)):
            item.add_marker(pytest.mark.timeout(LONGEST_S))
    if is_worker(config):
        items.sort(key=lambda item: unit_of(item.nodeid) != "engines")


def pytest_ignore_collect(collection_path: Path, config: pytest.Config) -> bool | None:
    if collection_path.suffix != ".py":
        return None
    # Nothing is imported of files that would only be deselected.
    path = collection_path.relative_to(TESTS.parent).as_posix()
    return is_left_out(path, config.option.markexpr) or None


@pytest.hookimpl(wrapper=True)
def pytest_collection() -> Generator[None, object, object]:
    # Modules and tests stay to the end. Garbage collections that visit them would take a quarter of
    # the time that collecting the tests takes, and stall what tests measure later.
    gc.disable()
    try:
        return (yield)
    finally:
        gc.freeze()
        gc.enable()


@pytest.hookimpl(optionalhook=True)
def pytest_xdist_make_scheduler(config: pytest.Config, log: Any) -> Any:
    from xdist.scheduler import LoadScopeScheduling

    class Units(LoadScopeScheduling):
        def _split_scope(self, nodeid: str) -> str:
            return unit_of(nodeid)

    return Units(config, log)


def pytest_sessionfinish(session: pytest.Session) -> None:
    if is_worker(session.config):
        session.config.workeroutput[MISSING_CASES] = sorted(missing_cases)  # type: ignore[attr-defined]


@pytest.hookimpl(optionalhook=True)
def pytest_testnodedown(node: Any) -> None:
    missing_cases.update(getattr(node, "workeroutput", {}).get(MISSING_CASES, ()))


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    skipped = terminalreporter.stats.get("skipped", [])
    num_skipped = sum(FULL_SET_ONLY in str(report.longrepr) for report in skipped)
    if line := summarize_missing(num_skipped, len(missing_cases)):
        terminalreporter.write_line(line)


# First, and so around what bounds a test's time: a wait for the others is not testing.
@pytest.hookimpl(wrapper=True, tryfirst=True)
def pytest_runtest_protocol(item: pytest.Item) -> Generator[None, object, object]:
    with ExitStack() as stack:
        # A pytest that a test starts must not wait for the test that waits for it.
        if is_worker(item.config):
            stack.enter_context(WORKERS.shared())
            if item.get_closest_marker("alone"):
                stack.enter_context(WORKERS.alone())
        return (yield)
