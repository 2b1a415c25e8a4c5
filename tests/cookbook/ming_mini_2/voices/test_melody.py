"""Melody is measured in semitones, and changed without touching what is unvoiced."""

import numpy as np
import pytest

from cookbook.ming_mini_2.voices.melody import (
    MelodyChange,
    change_melody,
    fill_unvoiced,
    measure_variation,
)


def test_an_octave_up_and_down_varies_by_twelve_semitones_around_its_middle() -> None:
    pitch = np.repeat([100.0, 200.0], 200)
    assert measure_variation(pitch) == pytest.approx(6, abs=0.1)


def test_a_range_stretches_the_melody_around_its_median() -> None:
    pitch = np.geomspace(100, 150, 101)
    flat = change_melody(pitch, MelodyChange(range=0.5))
    assert np.median(flat) == pytest.approx(np.median(pitch))
    before, after = measure_variation(pitch), measure_variation(flat)
    assert before is not None
    assert after == pytest.approx(before / 2, rel=1e-3)


def test_twelve_semitones_double_the_pitch_and_unvoiced_frames_stay() -> None:
    changed = change_melody(np.array([0.0, 100.0, 110.0, 0.0]), MelodyChange(12.0))
    np.testing.assert_allclose(changed, [0, 200, 220, 0])


def test_gaps_are_filled_between_their_neighbours() -> None:
    filled = fill_unvoiced(np.array([0.0, 100.0, 0.0, 400.0, 0.0]))
    np.testing.assert_allclose(filled, [100, 100, 200, 400, 400])


def test_speech_without_a_voice_has_no_melody() -> None:
    assert measure_variation(np.zeros(100)) is None
    with pytest.raises(ValueError, match="voiced"):
        fill_unvoiced(np.zeros(10))
