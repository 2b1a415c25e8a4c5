"""The machine's speed, by which bounds of time are judged."""

import pytest

from tests.testing import machine


@pytest.mark.parametrize(
    ("slowness", "asked", "patience"),
    [(0.5, 1.0, 1.0), (1.8, 1.0, 1.8), (1.8, 2.0, 2.0), (30.0, 1.0, 4.0), (30.0, 6.0, 6.0)],
)
def test_bounds_grow_with_slowness_and_with_what_is_asked(
    slowness: float, asked: float, patience: float
) -> None:
    assert machine.compute_patience(slowness, asked) == patience


def test_the_best_round_decides(monkeypatch: pytest.MonkeyPatch) -> None:
    times = iter([0.5, 0.031, 0.2])
    monkeypatch.setattr(machine, "_time_additions", lambda count: next(times))
    assert machine.measure_slowness(rounds=3, additions=1_000_000) == pytest.approx(1.0)
