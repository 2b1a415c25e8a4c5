"""Pulses follow the pitch; locked ones are in the same place wherever a latent begins."""

import numpy as np
import pytest

from cookbook.ming_mini.vocoder import RATE
from cookbook.ming_mini_2.voices.pulses import (
    LATENT,
    choose_cycles,
    free_pulses,
    locked_pulses,
)

COUNT = 20 * LATENT
FRAMES = 320
GLIDE = np.geomspace(180, 110, FRAMES)


def test_free_pulses_of_a_steady_pitch_are_a_period_apart() -> None:
    pulses = free_pulses(np.full(FRAMES, 147.0), COUNT)
    np.testing.assert_allclose(np.diff(pulses.places), RATE / 147, atol=0.1)
    np.testing.assert_allclose(pulses.gains, np.sqrt(RATE / 147), rtol=1e-3)
    assert len(pulses.places) == pytest.approx(COUNT / RATE * 147, abs=1)


def test_free_pulses_follow_a_glide() -> None:
    places = free_pulses(GLIDE, COUNT).places
    middles = (places[1:] + places[:-1]) / 2
    wanted = np.interp(middles / RATE / 0.005, np.arange(FRAMES), GLIDE)
    np.testing.assert_allclose(RATE / np.diff(places), wanted, rtol=0.01)


@pytest.mark.parametrize("per_cycle", [1, 2])
def test_locked_pulses_have_one_phase_at_the_start_of_every_latent(per_cycle: int) -> None:
    places = locked_pulses(GLIDE, COUNT, per_cycle).places
    cycles = np.arange(len(places)) + 0.5
    at_edges = np.interp(np.arange(1, 19) * LATENT, places, cycles) * per_cycle
    np.testing.assert_allclose(at_edges, np.round(at_edges), atol=0.02)
    # Free pulses are in any place there.
    free = free_pulses(GLIDE, COUNT).places
    loose = np.interp(np.arange(1, 19) * LATENT, free, np.arange(len(free)) + 0.5)
    assert np.abs(loose - np.round(loose)).max() > 0.2


def test_locked_pulses_keep_the_melody() -> None:
    places = locked_pulses(GLIDE, COUNT).places
    assert np.all(np.diff(places) > 0)
    middles = (places[1:] + places[:-1]) / 2
    wanted = np.interp(middles / RATE / 0.005, np.arange(FRAMES), GLIDE)
    semitones = 12 * np.log2(RATE / np.diff(places) / wanted)
    assert np.sqrt(np.mean(semitones**2)) < 1.0
    assert abs(np.mean(semitones)) < 0.3


def test_cycles_do_not_flutter_between_two_values() -> None:
    wanted = 10.5 + 0.05 * np.array([1, -1] * 10)
    assert np.count_nonzero(np.diff(choose_cycles(wanted, 1))) <= 1
    np.testing.assert_array_equal(choose_cycles(np.array([8.0, 9.0, 12.0]), 1), [8, 9, 12])
    np.testing.assert_array_equal(choose_cycles(np.array([8.5, 8.5]), 2), [8.5, 8.5])
