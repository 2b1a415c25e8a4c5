"""Clips in the bundled talker's voices: as the synthesizers speak, at one pitch, or copied."""

from collections import Counter
from itertools import islice

import numpy as np
import pytest
import torch

from cookbook.ming_mini.layout import configurations
from cookbook.ming_mini.lexicon import Lexicon
from cookbook.ming_mini.speakers import PRESETS, Speaker, held_out_speakers
from cookbook.ming_mini.synthesize import SynthesisError
from cookbook.ming_mini_2.voices import steady
from cookbook.ming_mini_2.voices.layout import VOICES
from cookbook.ming_mini_2.voices.steady import copy_by_vae, make_steady_clips, steady_jobs
from sglang_omni.models.ming.speech.vae import AudioVAE
from tests.cookbook.conftest import hum


def test_most_clips_are_in_the_bundled_voices_and_none_in_held_out_ones(lexicon: Lexicon) -> None:
    given = ("Is seven less than nine?",)
    jobs = list(islice(steady_jobs(1, lexicon, given=given), 300))
    names = Counter(take.speaker.name for job in jobs for take in job.takes)
    presets = sum(names[one.name] for one in PRESETS)
    assert 0.65 < presets / 300 < 0.8
    assert set(names).isdisjoint(one.name for one in held_out_speakers())
    assert 0.45 < sum(job.text in given for job in jobs) / 300 < 0.75
    assert jobs == list(islice(steady_jobs(1, lexicon, given=given), 300))


def test_half_of_the_clips_are_copied_and_a_quarter_keep_their_melody(
    lexicon: Lexicon, monkeypatch: pytest.MonkeyPatch
) -> None:
    spoken, flat, copied = (np.full(882, level, np.float32) for level in (0.1, 0.2, 0.4))

    def copy(vae: str, samples: np.ndarray) -> np.ndarray:
        assert samples is flat
        return copied

    monkeypatch.setattr(steady, "synthesize_natural", lambda text, speaker: spoken)
    monkeypatch.setattr(steady, "synthesize", lambda text, speaker: flat)
    monkeypatch.setattr(steady, "copy_by_vae", copy)
    monkeypatch.setattr(steady, "_bundled_vae", lambda: "vae")
    texts = ("One red box.", "Two green cups.", "Is it late?")
    jobs = islice(steady_jobs(2, lexicon, given=texts), 600)
    clips = [clip for job in jobs for clip in make_steady_clips(job)]
    shares = Counter(round(int(clip.samples[0]) / 32767, 1) for clip in clips)
    assert shares[0.4] / len(clips) == pytest.approx(0.5, abs=0.15)
    assert shares[0.1] / len(clips) == pytest.approx(0.25, abs=0.12)
    assert sum(shares.values()) == len(clips) == 600


def test_what_a_synthesizer_cannot_say_is_an_error(
    lexicon: Lexicon, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuse(text: str, speaker: Speaker) -> np.ndarray:
        raise SynthesisError("nothing was said")

    monkeypatch.setattr(steady, "synthesize_natural", refuse)
    monkeypatch.setattr(steady, "synthesize", refuse)
    with pytest.raises(SynthesisError):
        make_steady_clips(next(steady_jobs(3, lexicon)))


def test_a_copy_has_the_length_of_its_clip() -> None:
    torch.manual_seed(0)
    vae = AudioVAE(configurations(VOICES)[1]).eval()
    samples = hum(0.31, 120).astype(np.float32) / 32767
    copied = copy_by_vae(vae, samples)
    assert copied.shape == samples.shape
    assert copied.dtype == np.float32
    assert not np.array_equal(copied, samples)
