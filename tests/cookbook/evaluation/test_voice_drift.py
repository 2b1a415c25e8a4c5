"""Drift is told from the ordinary difference of two cuts."""

from random import Random

import numpy as np
import pytest

from cookbook.ming_mini.evaluation.voice_drift import CUT_S, RATE, _disjoint_cuts, measure_drift


def angle(samples: np.ndarray) -> np.ndarray:
    """A voice that is its mean, as a direction."""
    turn = float(samples.mean())
    return np.array([np.cos(turn), np.sin(turn)])


def test_a_steady_voice_ends_as_it_began() -> None:
    found = measure_drift(np.full(int(200 * RATE), 0.3, np.float32), angle, seed=1)
    assert found.seconds == pytest.approx(200)
    assert found.last_to_first == pytest.approx(found.random_mean) == pytest.approx(1)
    assert found.random_deviation == pytest.approx(0, abs=1e-6)


def test_a_voice_that_turns_ends_less_like_its_beginning() -> None:
    found = measure_drift(np.linspace(0, 1.5, int(200 * RATE), dtype=np.float32), angle, seed=1)
    assert found.last_to_first == pytest.approx(np.cos(1.5 * 0.9), abs=1e-3)
    assert found.random_mean > found.last_to_first + 0.2
    assert found.random_deviation > 0.01


def test_cuts_lie_apart_and_between_the_ends() -> None:
    for seed in range(50):
        first, second = _disjoint_cuts(Random(seed), 100.0)
        assert first >= CUT_S
        assert second - first >= CUT_S
        assert second + CUT_S <= 100 - CUT_S + 1e-9


def test_a_short_reading_is_refused() -> None:
    with pytest.raises(ValueError, match="79 s is too short"):
        measure_drift(np.zeros(int(79 * RATE), np.float32), angle, seed=1)
