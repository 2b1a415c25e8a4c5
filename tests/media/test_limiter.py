"""The limiter: quiet sound untouched, loud sound bounded, and no overtones."""

import numpy as np
import pytest

from sglang_omni.media.limiter import CEILING, THRESHOLD, PeakLimiter

RATE = 44_100


def sine(amplitude: float, hz: float = 220.0, seconds: float = 2.0) -> np.ndarray:
    time = np.arange(int(seconds * RATE)) / RATE
    return (amplitude * np.sin(2 * np.pi * hz * time)).astype(np.float32)


def noise(level: float, samples: int = 100_000) -> np.ndarray:
    return np.random.default_rng(3).normal(0, level, samples).astype(np.float32)


def distortion(pcm: np.ndarray, hz: float) -> float:
    """The overtones' share of the amplitude, in the second second."""
    power = np.abs(np.fft.rfft(pcm[RATE // 2 : RATE // 2 + RATE] * np.hanning(RATE))) ** 2

    def around(frequency: float) -> float:
        return float(power[int(frequency) - 3 : int(frequency) + 4].sum())

    overtones = sum(around(n * hz) for n in range(2, int(RATE / 2.2 / hz)))
    return float(np.sqrt(overtones / around(hz)))


def test_what_is_below_the_threshold_stays_bit_for_bit() -> None:
    pcm = np.clip(noise(0.4), -THRESHOLD, THRESHOLD).astype(np.float32)
    pcm[np.abs(pcm) > THRESHOLD] = 0.0  # What float32 rounds up.
    assert PeakLimiter(RATE).push(pcm).tobytes() == pcm.tobytes()


@pytest.mark.parametrize("amplitude", [0.95, 1.5, 4.0, 1e6])
def test_nothing_is_louder_than_the_ceiling_and_no_top_is_flat(amplitude: float) -> None:
    for pcm in (sine(amplitude), noise(amplitude)):
        limited = PeakLimiter(RATE).push(pcm)
        assert np.abs(limited).max() <= CEILING + 1e-6
        assert np.array_equal(np.sign(limited), np.sign(pcm))
    loud = np.abs(limited) > THRESHOLD
    assert not (loud[1:] & loud[:-1] & (np.diff(limited) == 0)).any()


@pytest.mark.parametrize("hz", [80, 100, 220, 1000])
@pytest.mark.parametrize("amplitude", [1.0, 1.5, 3.0])
def test_a_loud_tone_gets_hardly_any_overtones(amplitude: float, hz: float) -> None:
    pcm = sine(amplitude, hz)
    assert distortion(PeakLimiter(RATE).push(pcm), hz) < 0.01
    if amplitude > 1:
        assert distortion(np.clip(pcm, -1, 1), hz) > 0.1, "cutting the tops off is heard"


def test_the_gain_is_one_again_soon_after_a_peak() -> None:
    pcm = np.concatenate((sine(1.5, seconds=0.1), sine(0.5)))
    limited = PeakLimiter(RATE).push(pcm)
    again = int(0.1 * RATE) + int(0.15 * RATE)
    assert not np.array_equal(limited[:again], pcm[:again])
    assert np.array_equal(limited[again:], pcm[again:])


@pytest.mark.parametrize("level", [0.2, 0.5, 2.0])
def test_chunks_make_no_difference_to_a_single_bit(level: float) -> None:
    pcm = noise(level)
    whole, pieces = PeakLimiter(RATE).push(pcm), PeakLimiter(RATE)
    cuts = np.sort(np.random.default_rng(4).integers(0, len(pcm), 300))
    joined = np.concatenate([pieces.push(piece) for piece in np.split(pcm, cuts)])
    assert joined.tobytes() == whole.tobytes()


def test_a_stream_of_hours_is_limited_as_its_beginning_is() -> None:
    early, late = PeakLimiter(RATE), PeakLimiter(RATE)
    late.push(np.zeros(1, np.float32))
    late._position = 10 * 3600 * RATE  # Ten hours of silence, without their memory.
    pcm = sine(1.5)
    assert np.abs(early.push(pcm) - late.push(pcm)).max() < 1e-6
