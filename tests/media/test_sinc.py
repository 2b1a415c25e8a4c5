"""The conversion of rates equals torchaudio's."""

import numpy as np
import pytest
import torch
from torchaudio.transforms import Resample

from sglang_omni.media.sinc import resample

# Of the last pair the divisor is 1, so that it has 1,600 phases.
RATES = [(rate, 16_000) for rate in (8_000, 11_025, 22_050, 44_100, 48_000, 192_000)]


@pytest.mark.parametrize(("source", "target"), [*RATES, (1_601, 1_600)])
@pytest.mark.parametrize("length", [1, 500, 12_345])
def test_the_conversion_equals_torchaudio(source: int, target: int, length: int) -> None:
    noise = np.random.default_rng(source).uniform(-1, 1, length).astype(np.float32)
    expected = Resample(source, target)(torch.from_numpy(noise)).numpy()
    actual = resample(noise, source, target)
    assert actual.dtype == np.float32
    assert actual.shape == expected.shape
    np.testing.assert_allclose(actual, expected, atol=2e-6)


def test_an_equal_rate_changes_nothing() -> None:
    noise = np.random.default_rng(0).uniform(-1, 1, 100).astype(np.float32)
    assert resample(noise, 16_000, 16_000) is noise


def test_a_long_clip_takes_no_table_of_rates_without_a_common_divisor() -> None:
    clip = np.ones(60 * 44_099, np.float32)
    converted = resample(clip, 44_099, 16_000)
    assert len(converted) == 60 * 16_000
    assert np.abs(converted[1000:-1000] - 1).max() < 1e-2


def test_nothing_becomes_nothing() -> None:
    assert resample(np.zeros(0, np.float32), 44_100, 16_000).shape == (0,)
