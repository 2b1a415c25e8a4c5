"""Resampling by chunks: equal to that of the whole."""

import numpy as np
import pytest
import soxr

from sglang_omni.media.resample import Resampler

SIGNAL = (0.3 * np.random.default_rng(0).standard_normal(60_017)).astype(np.float32)


def stream(signal: np.ndarray, rate: int, sizes: list[int]) -> np.ndarray:
    resampler = Resampler(44_100, rate)
    parts = np.split(signal, np.cumsum(sizes))
    return np.concatenate([*map(resampler.push, parts), resampler.finish()])


@pytest.mark.parametrize("rate", [8000, 16_000, 22_050, 24_000, 48_000])
@pytest.mark.parametrize("sizes", [[], [1, 0, 14_112, 3, 20_000], [100] * 500])
def test_joined_chunks_equal_the_one_shot_result(rate: int, sizes: list[int]) -> None:
    expected = soxr.resample(SIGNAL, 44_100, rate, quality="HQ")
    np.testing.assert_array_equal(stream(SIGNAL, rate, sizes), expected)


def test_equal_rates_change_nothing() -> None:
    np.testing.assert_array_equal(stream(SIGNAL, 44_100, [7, 11_000]), SIGNAL)


def test_a_tone_keeps_its_pitch_and_level() -> None:
    tone = np.sin(2 * np.pi * 1000 * np.arange(44_100) / 44_100).astype(np.float32)
    resampled = stream(tone, 24_000, [14_112, 14_112])[6000:18_000]
    expected = np.sin(2 * np.pi * 1000 * np.arange(6000, 18_000) / 24_000)
    np.testing.assert_allclose(resampled, expected, atol=1e-3)


def test_no_samples_give_no_samples() -> None:
    assert len(stream(np.zeros(0, np.float32), 24_000, [])) == 0
