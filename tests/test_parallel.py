"""Tests that share two workers: beside each other, or one of them alone."""

from collections.abc import Callable
from pathlib import Path
from threading import Barrier, Thread
from time import sleep

import pytest

from tests.testing.parallel import Neighbours

Make = Callable[[], Neighbours]


@pytest.fixture
def neighbour(tmp_path: Path) -> Make:
    """Makes one worker's view of a room that all of them share."""
    door, room = tmp_path / "door", tmp_path / "room"
    door.touch()
    room.touch()
    return lambda: Neighbours(door, room)


def run_all(*bodies: Callable[[], None]) -> None:
    """Run them at once, and fail where one does not end."""
    threads = [Thread(target=body, daemon=True) for body in bodies]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(20)
    assert not any(thread.is_alive() for thread in threads)


def test_two_that_want_to_be_alone_are_so_in_turn(neighbour: Make) -> None:
    inside: list[str] = []
    seen: list[list[str]] = []
    met = Barrier(2)

    def test(name: str) -> None:
        one = neighbour()
        with one.beside():
            met.wait(10)
            # As a fixture may, within a test that is alone already.
            with one.alone(), one.alone():
                inside.append(name)
                sleep(0.1)
                seen.append(list(inside))
                inside.remove(name)

    run_all(lambda: test("a"), lambda: test("b"))
    assert sorted(seen) == [["a"], ["b"]]


def test_who_is_alone_remains_so_after_what_it_makes_alone(neighbour: Make) -> None:
    order: list[str] = []
    made = Barrier(2)

    def first() -> None:
        one = neighbour()
        with one.beside(), one.alone():
            with one.alone():
                pass
            made.wait(10)
            sleep(0.2)
            order.append("first")

    def second() -> None:
        made.wait(10)
        with neighbour().beside():
            order.append("second")

    run_all(first, second)
    assert order == ["first", "second"]
