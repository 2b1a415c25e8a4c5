"""Lost words are counted for each voice, and a VAE's copy is as long as its clip."""

import numpy as np
import pytest
import torch

from cookbook.ming_mini.layout import configurations
from cookbook.ming_mini.vae_init import new_vae
from cookbook.ming_mini_2.evaluation.copies import copy, count_errors, summarise
from cookbook.ming_mini_2.voices.layout import VOICES
from cookbook.ming_mini_2.voices.pulses import LATENT
from cookbook.ming_mini_2.voices.speakers import PRESETS, VoiceSpeaker


def test_errors_are_counted_for_each_voice() -> None:
    def say(text: str, speaker: VoiceSpeaker) -> np.ndarray:
        return np.array([len(text), speaker is PRESETS[0]])

    def hear(samples: np.ndarray) -> list[str]:
        return ["seven", "birds"] if samples[1] else ["seven", "words", "too"]

    said = [("7 birds.", PRESETS[0]), ("Seven birds.", PRESETS[1])]
    report = summarise(list(count_errors(said, say, hear)))
    assert report == {
        "words": 4,
        "wrong": 2,
        "word_error": 0.5,
        "voices": {PRESETS[0].name: 0.0, PRESETS[1].name: 1.0},
    }


def test_a_copy_is_as_long_as_its_clip() -> None:
    torch.manual_seed(1)
    vae = new_vae(configurations(VOICES)[1], seed=0).eval()
    samples = np.random.default_rng(1).normal(0, 0.1, 5 * LATENT).astype(np.float32)
    copied = copy(samples, vae)
    assert copied.shape == samples.shape
    assert np.abs(copied).max() == pytest.approx(np.abs(copy(samples, vae)).max())
    assert not np.allclose(copied, 0)
