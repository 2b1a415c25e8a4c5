"""The encoder learns what recordings are, and keeps the latents of locked pulses."""

import math
from pathlib import Path

import pytest
import torch

from cookbook.ming_mini.schedule import Rate, RunClock
from cookbook.ming_mini.synthesize import to_int16
from cookbook.ming_mini.vae_init import new_vae
from cookbook.ming_mini.weights import load_weights
from cookbook.ming_mini_2.voices.corpus import VoiceCorpusFolder, write_corpus
from cookbook.ming_mini_2.voices.pulses import LATENT
from cookbook.ming_mini_2.voices.speakers import PRESETS
from cookbook.ming_mini_2.voices.synthesize import Recording, Take, VoiceClip, make_take
from cookbook.ming_mini_2.voices.train_encoder import (
    Pairs,
    Settings,
    Trainer,
    disturb,
    error_of,
    run,
)
from sglang_omni.models.ming.speech.vae import AudioVAE, Posterior
from tests.cookbook.ming_mini_2.voices.conftest import Configs, glide

CPU = torch.device("cpu")
SETTINGS = Settings(batch=4, crop=6, rate=Rate(2e-3, 2e-3, 1), hours=0.01)


@pytest.fixture
def corpus(tmp_path: Path) -> VoiceCorpusFolder:
    """Two chunks of a glide with free and with locked pulses; the first is held out."""
    free, locked = (
        to_int16(make_take(glide(2.0, 180, 110), Take(PRESETS[0]), form))
        for form in ("free", "locked")
    )
    clip = VoiceClip("Hi.", Take(PRESETS[0], late=0), locked, Recording(free, locked))
    write_corpus(tmp_path, [clip, clip], 1.0, 60.0, chunk_clips=1)
    return VoiceCorpusFolder(tmp_path)


@pytest.fixture
def vae(voice_configs: Configs) -> AudioVAE:
    return new_vae(voice_configs[1], 0).eval().requires_grad_(False)


def test_an_error_counts_means_and_deviations_of_all_dimensions_alike() -> None:
    def posterior(mean: float, std: float) -> Posterior:
        raw = torch.full((1, 1, 3), std - 1e-4).expm1().log()
        return Posterior(torch.full((1, 1, 3), mean), raw)

    exact = posterior(0.5, 0.01)
    assert error_of(exact, exact).item() == 0
    assert error_of(exact, posterior(0.8, 0.01)).item() == pytest.approx(3.0, rel=1e-2)
    assert error_of(posterior(0.5, 0.4), posterior(1.0, 0.4)).item() == pytest.approx(3.0, rel=1e-3)
    wider = error_of(exact, posterior(0.5, 0.02)).item()
    assert wider == pytest.approx(3 * math.log(2) ** 2, rel=1e-3)


def test_a_disturbed_recording_has_another_level_and_sign_and_noise() -> None:
    crops = torch.full((64, 1000), 0.1)
    made = disturb(crops, torch.Generator().manual_seed(0))
    levels, noise = made.mean(1), made.std(1)
    assert levels.abs().min() < 0.06
    assert 0.15 < levels.abs().max() < 0.26
    assert 16 < (levels < 0).sum() < 48
    assert 5e-5 < noise.min() < noise.max() < 8e-3


def test_recordings_come_near_to_their_locked_pulses(
    corpus: VoiceCorpusFolder, vae: AudioVAE
) -> None:
    pairs, places = Pairs(0.01, CPU), torch.Generator().manual_seed(0)
    pairs.add(corpus.new_chunks())
    trainer = Trainer(vae, SETTINGS, CPU)
    crops = pairs.draw(SETTINGS, places)
    assert crops is not None
    assert crops[0].shape == crops[1].shape == (4, 6 * LATENT)
    reports = [trainer.train(*crops, progress=0.0) for _ in range(40)]
    assert reports[0]["locked"] == pytest.approx(0.0, abs=1e-4)
    assert reports[-1]["recordings"] < 0.5 * reports[0]["recordings"]
    assert reports[-1]["locked"] < reports[0]["recordings"] / 4


def test_a_run_writes_the_whole_vae_and_changes_its_encoder_alone(
    corpus: VoiceCorpusFolder,
    vae: AudioVAE,
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
) -> None:
    before = {name: one.clone() for name, one in vae.state_dict().items()}
    run(Trainer(vae, SETTINGS, CPU), corpus, tmp_path / "vae", RunClock(6.0), CPU)
    saved = load_weights(tmp_path / "vae", "vae")
    assert saved.keys() == before.keys()
    changed = {name for name in saved if not torch.equal(saved[name], before[name])}
    assert changed
    assert all(name.startswith("encoder.") for name in changed)
    assert "held out" in capsys.readouterr().out


def test_too_few_recordings_are_waited_for() -> None:
    assert Pairs(0.01, CPU).draw(SETTINGS, torch.Generator()) is None
