"""Simulated time, and cards whose engines take turns."""

import pytest

from benchmarks.cluster.events import Card, Clock


def test_actions_run_in_the_order_of_their_times() -> None:
    clock, seen = Clock(), list[tuple[str, float]]()
    for name, at in (("late", 2.0), ("early", 1.0), ("beyond", 9.0)):
        clock.after(at, lambda name=name: seen.append((name, clock.now)))  # type: ignore[misc]
    clock.run(5.0)
    assert seen == [("early", 1.0), ("late", 2.0)]
    assert clock.now == 5.0


def test_an_engine_alone_has_the_whole_card() -> None:
    clock = Clock()
    card, ended = Card(clock), list[float]()
    card.run(0.5, lambda: ended.append(clock.now))
    clock.run(2.0)
    assert ended == [0.5]
    assert card.busy_s == 0.5


def test_engines_on_one_card_take_turns() -> None:
    """The first works a second alone; then both have half of the card until the second is done."""
    clock = Clock()
    card, ended = Card(clock), dict[str, float]()
    card.run(2.0, lambda: ended.update(long=clock.now))
    clock.after(1.0, lambda: card.run(0.25, lambda: ended.update(short=clock.now)))
    clock.run(10.0)
    assert ended == pytest.approx({"short": 1.5, "long": 2.25})
    assert card.busy_s == pytest.approx(2.25)
