"""Voice activity: what is speech, however the sound is cut."""

import subprocess
import sys

import numpy as np
import pytest

from sglang_omni.media.vad import FRAME, SileroDetector, contains_speech
from tests.entrypoints.realtime.sounds import silence, voice

RATE = 16_000


def int16(samples: np.ndarray) -> np.ndarray:
    return np.rint(samples * 32_767).astype(np.int16)


SPOKEN = int16(np.concatenate((silence(0.5, RATE), voice(1.0, RATE), silence(0.5, RATE))))


def test_a_voice_is_speech_and_what_is_around_it_is_not() -> None:
    speech = SileroDetector().push(SPOKEN)
    assert len(speech) == len(SPOKEN) // FRAME
    assert max(speech[:15]) < 0.2
    assert min(speech[18:30]) > 0.6
    assert max(speech[-3:]) < 0.35


def test_a_tone_and_noise_are_not_speech() -> None:
    tone = 0.25 * np.sin(np.arange(RATE) / 16)
    noise = 0.1 * np.random.default_rng(0).normal(size=RATE)
    for sound in (tone, noise):
        assert max(SileroDetector().push(int16(sound))) < 0.5


def test_it_makes_no_difference_how_the_sound_is_cut() -> None:
    whole, detector = SileroDetector().push(SPOKEN), SileroDetector()
    pieces = np.split(SPOKEN, [1, 511, 512, 700, 5000, 20_000])
    cut = [value for piece in pieces for value in detector.push(piece)]
    np.testing.assert_allclose(cut, whole, atol=1e-4)


def test_two_streams_do_not_hear_each_other() -> None:
    alone, one, other = SileroDetector().push(SPOKEN), SileroDetector(), SileroDetector()
    heard = []
    for piece in np.array_split(SPOKEN, 20):
        heard += one.push(piece)
        other.push(piece[::-1].copy())
    np.testing.assert_allclose(heard, alone, atol=1e-4)


def test_neither_torch_nor_the_package_around_the_model_is_imported() -> None:
    code = (
        "import sys; from sglang_omni.media.vad import SileroDetector; "
        "import sglang_omni.entrypoints.http.app; SileroDetector(); "
        "sys.exit(bool({'torch', 'sglang', 'silero_vad'} & set(sys.modules)))"
    )
    subprocess.run([sys.executable, "-c", code], check=True)


def test_a_recording_is_searched_to_its_end() -> None:
    quiet = silence(25.0, RATE)
    assert not contains_speech(quiet)
    assert contains_speech(np.concatenate((quiet, 0.2 * voice(0.5, RATE))))


@pytest.mark.parametrize("level", [1e-4, 0.01, 0.1, 0.5])
def test_noise_of_any_level_holds_no_speech(level: float) -> None:
    noise = level * np.random.default_rng(0).normal(size=4 * RATE)
    assert not contains_speech(noise.astype(np.float32))


def test_the_shortest_clips_hold_none() -> None:
    for samples in (0, 1, 511, 512):
        assert not contains_speech(np.zeros(samples, np.float32))
