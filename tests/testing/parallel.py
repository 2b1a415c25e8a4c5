"""How the tests share two workers of pytest-xdist, as `make test` runs them.

A file is a unit, so that what it makes once is made once. Everything that starts an engine with
SGLang is one unit, which begins first: such an engine takes gigabytes, and both cores while it
starts. A test that judges a time runs `alone`.
"""

import fcntl
import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
ENGINES = ("tests/server/", "tests/engines/thinker/", "tests/cookbook/thinker/test_pack.py")


def is_worker(config: pytest.Config) -> bool:
    """Whether this process is one of several that share the tests."""
    return hasattr(config, "workerinput")


def unit_of(test: str) -> str:
    """The unit of a test, which is named by its path, two colons and the rest."""
    path = test.partition("::")[0]
    return "engines" if path.startswith(ENGINES) else path


class WorkerLock:
    """A lock that the workers of a checkout share: tests run side by side, or one of them alone.

    It is a readers-writer lock of two files. Whoever takes it takes `queue` first. A worker that
    waits to be alone keeps `queue`, so that no other begins a test and the wait ends. Nobody holds
    `running` while waiting for `queue`, for that would be a deadlock.
    """

    def __init__(self, queue: Path, running: Path) -> None:
        """Two files that exist serve as locks."""
        self._queue, self._running = (os.open(path, os.O_RDONLY) for path in (queue, running))
        self._is_alone = False

    @contextmanager
    def shared(self) -> Iterator[None]:
        """While the body runs, nobody is alone."""
        with _held(self._queue):
            fcntl.flock(self._running, fcntl.LOCK_SH)
        try:
            yield
        finally:
            fcntl.flock(self._running, fcntl.LOCK_UN)

    @contextmanager
    def alone(self) -> Iterator[None]:
        """Within `shared`: let the others end their tests, who begin none while the body runs.

        They may be alone first. Within another `alone` it changes nothing.
        """
        if self._is_alone:
            yield
            return
        fcntl.flock(self._running, fcntl.LOCK_UN)
        with _held(self._queue):
            fcntl.flock(self._running, fcntl.LOCK_EX)
            self._is_alone = True
            try:
                yield
            finally:
                self._is_alone = False
                fcntl.flock(self._running, fcntl.LOCK_SH)


@contextmanager
def _held(lock: int) -> Iterator[None]:
    fcntl.flock(lock, fcntl.LOCK_EX)
    try:
        yield
    finally:
        fcntl.flock(lock, fcntl.LOCK_UN)


# Files that are there anyway.
WORKERS = WorkerLock(Path(__file__), ROOT / "conftest.py")
