"""Speech and silence are told apart by level, whatever the loudness and the chunks."""

import numpy as np
import pytest

from sglang_omni.pipeline.timestamps.speech_runs import LevelMeter, find_speech_runs

RATE = 16_000


def noise(seconds: float, level: float = 0.1) -> np.ndarray:
    samples = np.random.default_rng(0).normal(0, level, round(seconds * RATE))
    return samples.astype(np.float32)


def silence(seconds: float) -> np.ndarray:
    return np.zeros(round(seconds * RATE), np.float32)


def measure(pcm: np.ndarray, chunk: int = 10**9) -> np.ndarray:
    meter = LevelMeter(RATE)
    for start in range(0, len(pcm), chunk):
        meter.push(pcm[start : start + chunk])
    return meter.finish()


def find(*parts: np.ndarray) -> list[tuple[float, float]]:
    runs = find_speech_runs(measure(np.concatenate(parts)))
    return [(round(run.start, 2), round(run.end, 2)) for run in runs]


@pytest.mark.parametrize("chunk", [7, 160, 4000])
def test_levels_do_not_depend_on_the_chunks(chunk: int) -> None:
    pcm = noise(0.5)
    np.testing.assert_allclose(measure(pcm, chunk), measure(pcm), rtol=1e-6)
    assert len(measure(pcm)) == 50


@pytest.mark.parametrize("level", [0.02, 0.2, 2.0])
def test_runs_are_where_the_speech_is(level: float) -> None:
    found = find(silence(0.2), noise(0.5, level), silence(0.3), noise(0.4, level), silence(0.1))
    assert found == [(0.2, 0.7), (1.0, 1.4)]


def test_a_closure_is_no_pause_and_a_click_no_speech() -> None:
    assert find(noise(0.3), silence(0.05), noise(0.3)) == [(0.0, 0.65)]
    assert find(noise(0.3), silence(0.3), noise(0.01), silence(0.3)) == [(0.0, 0.3)]


def test_silence_has_no_runs() -> None:
    assert find(silence(1.0)) == find(silence(0.0)) == []
