"""A moment of the original is found again at any speed."""

import numpy as np
import pytest

from sglang_omni.media.stretch import TimeStretch
from sglang_omni.media.tempo import convert_time


@pytest.mark.parametrize("rate", [44_100, 24_000])
@pytest.mark.parametrize("speed", [0.25, 0.5, 0.9, 1.3, 2.0, 4.0])
def test_bursts_are_heard_when_it_is_told(rate: int, speed: float) -> None:
    starts = (1.0, 3.137, 5.4)
    pcm = np.zeros(8 * rate, np.float32)
    for start in starts:
        pcm[round(start * rate) :][:rate] = 0.3 * np.sin(np.arange(rate) / 10)
    stretch = TimeStretch(rate, speed)
    loud = np.flatnonzero(np.abs(np.concatenate((stretch.push(pcm), stretch.finish()))) > 0.05)
    silences = np.flatnonzero(np.diff(loud) > 0.1 * rate)
    onsets = loud[np.concatenate(([0], silences + 1))] / rate
    expected = [convert_time(start, rate, speed) for start in starts]
    # The slower, the less the filter keeps to the time: without the conversion it is 0.15 s off.
    assert onsets.tolist() == pytest.approx(expected, abs=max(0.01, 0.012 / speed))


def test_at_speed_1_nothing_moves() -> None:
    assert convert_time(1.5, 44_100, 1.0) == 1.5
    assert convert_time(0.0, 44_100, 2.0) == 0.0
