"""Steady speech: its pulses stand still in the VAE's frames, whatever the voice."""

import numpy as np
import pytest
import torch

from cookbook.ming_mini.layout import configurations
from cookbook.ming_mini.vae_init import new_vae
from cookbook.ming_mini.vocoder import HOP, PITCHES, RATE, Analysis, resynthesise

BINS = 513


def vowel(seconds: float, voiced: bool = True) -> Analysis:
    """A still vowel: two formants over a falling spectrum."""
    frames, hertz = int(seconds / 0.005), np.linspace(0, 8000, BINS)
    shape = np.exp(-(((hertz - 600) / 200) ** 2)) + 0.3 * np.exp(-(((hertz - 1700) / 300) ** 2))
    envelope = np.tile(1e-6 + 1e-3 * shape, (frames, 1))
    return Analysis(envelope, np.full(frames, 120.0 if voiced else 0.0), 16_000)


@pytest.mark.parametrize("pitch", PITCHES)
def test_every_frame_of_a_vowel_is_like_every_other(pitch: float) -> None:
    speech = resynthesise(vowel(0.6), pitch)
    assert len(speech) % HOP == 0
    frames = speech[5 * HOP : 25 * HOP].reshape(-1, HOP)
    assert np.abs(frames).max() > 0.01
    assert np.abs(frames - frames[0]).max() < 0.02 * np.abs(frames).max()


def test_the_pitch_is_the_one_asked_for() -> None:
    speech = resynthesise(vowel(0.6), 150.0)[4 * HOP :][: RATE // 4]
    spectrum = np.abs(np.fft.rfft(speech * np.hanning(len(speech))))
    hertz = np.fft.rfftfreq(len(speech), 1 / RATE)
    peaks = hertz[spectrum > 0.2 * spectrum.max()]
    assert (np.abs(peaks / 150 - np.round(peaks / 150)) * 150 < 12).all()


def test_a_new_head_already_has_the_phases_of_every_voice() -> None:
    """A frame of the head, cut out of steady speech, has the phases its bias begins with."""
    head = new_vae(configurations()[1], seed=0).decoder.head
    bins = head.istft.size // 2 + 1
    hertz = torch.arange(bins) * RATE / head.istft.size
    for pitch in PITCHES:
        speech = torch.from_numpy(resynthesise(vowel(0.6), pitch))
        frame = speech[10 * HOP - head.istft.crop :][: head.istft.size]
        spectrum = torch.fft.rfft(frame * head.istft.window)
        strong = (spectrum.abs() > 0.1 * spectrum.abs().max()) & (hertz > 80)
        error = torch.polar(spectrum.abs(), spectrum.angle() - head.out.bias[bins:])
        assert (error.real[strong] > 0.95 * spectrum.abs()[strong]).all(), pitch


def test_without_voice_there_is_noise() -> None:
    speech = resynthesise(vowel(0.6, voiced=False), 100.0)
    frames = speech[5 * HOP : 25 * HOP].reshape(-1, HOP)
    assert np.abs(np.corrcoef(frames)[0, 1:]).max() < 0.5
    assert np.array_equal(speech, resynthesise(vowel(0.6, voiced=False), 200.0))


def test_noise_is_as_loud_as_a_voice_with_the_same_envelope() -> None:
    def level(voiced: bool) -> float:
        speech = resynthesise(vowel(1.2, voiced), 100.0)
        return float(np.sqrt(np.mean(np.square(speech[5 * HOP : -5 * HOP]))))

    assert level(voiced=False) == pytest.approx(level(voiced=True), rel=0.15)
