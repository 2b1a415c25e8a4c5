"""Tests that share two workers: beside each other, or one of them alone."""

from collections.abc import Callable
from pathlib import Path
from threading import Barrier, Thread
from time import sleep

import pytest

from tests.testing.parallel import WorkerLock

Make = Callable[[], WorkerLock]


@pytest.fixture
def make_lock(tmp_path: Path) -> Make:
    """Makes one worker's lock on files that all of them share."""
    queue, running = tmp_path / "queue", tmp_path / "running"
    queue.touch()
    running.touch()
    return lambda: WorkerLock(queue, running)


def run_all(*bodies: Callable[[], None]) -> None:
    """Run them at once, and fail where one does not end."""
    threads = [Thread(target=body, daemon=True) for body in bodies]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(20)
    assert not any(thread.is_alive() for thread in threads)


def test_two_that_want_to_be_alone_are_so_in_turn(make_lock: Make) -> None:
    inside: list[str] = []
    seen: list[list[str]] = []
    met = Barrier(2)

    def test(name: str) -> None:
        lock = make_lock()
        with lock.shared():
            met.wait(10)
            # As a fixture may, within a test that is alone already.
            with lock.alone(), lock.alone():
                inside.append(name)
                sleep(0.1)
                seen.append(list(inside))
                inside.remove(name)

    run_all(lambda: test("a"), lambda: test("b"))
    assert sorted(seen) == [["a"], ["b"]]


def test_who_is_alone_remains_so_after_what_it_makes_alone(make_lock: Make) -> None:
    order: list[str] = []
    made = Barrier(2)

    def first() -> None:
        lock = make_lock()
        with lock.shared(), lock.alone():
            with lock.alone():
                pass
            made.wait(10)
            sleep(0.2)
            order.append("first")

    def second() -> None:
        made.wait(10)
        with make_lock().shared():
            order.append("second")

    run_all(first, second)
    assert order == ["first", "second"]
