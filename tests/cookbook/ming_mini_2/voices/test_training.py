"""A few steps at a tiny size lower the losses, with instructions and frames of 11 ms."""

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
import torch

from cookbook.ming_mini import train_talker, train_vae
from cookbook.ming_mini.batches import Batcher, prompt_frame
from cookbook.ming_mini.corpus import Chunk
from cookbook.ming_mini.losses import phase_band
from cookbook.ming_mini.schedule import Rate
from cookbook.ming_mini.synthesize import to_int16
from cookbook.ming_mini.utterances import Library
from cookbook.ming_mini.vae_init import new_vae
from cookbook.ming_mini.weights import load_pieces
from cookbook.ming_mini_2.voices.corpus import VoiceCorpusFolder, write_corpus
from cookbook.ming_mini_2.voices.pulses import LATENT
from cookbook.ming_mini_2.voices.speakers import PRESETS
from cookbook.ming_mini_2.voices.synthesize import Take, VoiceClip, make_take
from sglang_omni.models.ming.speech.prompt import PromptTokenizer
from tests.cookbook.ming_mini_2.voices.conftest import Configs, glide

CPU = torch.device("cpu")
VAE_SETTINGS = train_vae.Settings(
    batch=4, crop=6, rate=Rate(4e-3, 4e-3, 1), channels=4, adversarial_from=9.0
)


@pytest.fixture
def library(
    voice_configs: Configs,
    voice_clips: list[VoiceClip],
    voice_tokenizer: PromptTokenizer,
    tmp_path: Path,
) -> Library:
    write_corpus(tmp_path, voice_clips, 1.0, 60.0, chunk_clips=4)
    talker, vae = voice_configs
    library = Library(new_vae(vae, 0), 400, CPU, patch=talker.patch_size)
    chunks = VoiceCorpusFolder(tmp_path).new_chunks()
    train_talker.add_chunks(library, voice_tokenizer, chunks)
    return library


@pytest.fixture
def speech() -> train_vae.SpeechBuffer:
    """Locked pulses of two glides."""
    parts = [
        to_int16(make_take(glide(2.0, *ends), Take(PRESETS[0]), "locked"))
        for ends in ((180, 110), (120, 200))
    ]
    samples = np.concatenate(parts)
    buffer = train_vae.SpeechBuffer(0.01, CPU, LATENT)
    buffer.add([Chunk(samples, np.array([0, len(samples)]), np.array([0]), ("",))])
    return buffer


def test_crops_start_where_latents_do(speech: train_vae.SpeechBuffer) -> None:
    places = speech.places(50, 6 * LATENT, torch.Generator().manual_seed(0))
    assert torch.all(places % LATENT == 0)
    assert len(places.unique()) > 5


def test_the_phase_band_covers_the_same_frequencies_in_shorter_frames() -> None:
    for progress in (0.0, 0.5, 1.0):
        long, short = phase_band(progress) / 3528, phase_band(progress, 2016) / 2016
        assert short == pytest.approx(long, rel=0.05)


def test_the_vae_learns_levels_and_phases(
    voice_configs: Configs, speech: train_vae.SpeechBuffer
) -> None:
    trainer = train_vae.Trainer(voice_configs[1], VAE_SETTINGS, speech, CPU)
    reports = [
        {name: value.item() for name, value in trainer.train(progress=0).items()} for _ in range(50)
    ]
    for name, factor in (("mel", 0.7), ("phase", 0.95)):
        first, last = (np.mean([one[name] for one in some]) for some in (reports[:5], reports[-5:]))
        assert last < factor * first, name


def test_averaged_weights_are_split_and_training_starts_from_them(
    voice_configs: Configs, speech: train_vae.SpeechBuffer, tmp_path: Path
) -> None:
    settings = replace(VAE_SETTINGS, split_bytes=300_000)
    first = train_vae.Trainer(voice_configs[1], settings, speech, CPU)
    first.train(progress=0.5)
    first.save(tmp_path, spent=7.0)
    sizes = [path.stat().st_size for path in tmp_path.glob("vae-*.safetensors")]
    largest = max(tensor.nbytes for tensor in first.average.tensors.values())
    assert len(sizes) > 2
    assert max(sizes) < max(300_000, largest) + 20_000
    second = train_vae.Trainer(voice_configs[1], settings, speech, CPU, start=tmp_path)
    wanted = load_pieces(tmp_path, train_vae.VAE)
    for name, tensor in second.vae.state_dict().items():
        assert torch.equal(tensor, wanted[name]), name


def test_instructed_clips_are_said_but_prompt_nobody(library: Library) -> None:
    spoken = [one for pool in library.tables.by_patches.values() for one in pool]
    assert sorted(len(one.instruction) > 0 for one in spoken) == [False, False, False, True]
    tables = library.tables
    clips, recordings = (
        [one for pool in pools.values() for one in pool]
        for pools in (tables.prompts, tables.recordings)
    )
    # Three clips, and the recording of each.
    assert len(clips) == len(recordings) == 3
    assert all(len(one.instruction) == 0 for one in (*clips, *recordings))


def test_speech_is_prompted_by_recordings_and_by_clips(
    library: Library, voice_tokenizer: PromptTokenizer
) -> None:
    batcher = Batcher(library.tables, prompt_frame(voice_tokenizer), 24, seed=0)
    recorded = {one.first for pool in library.tables.recordings.values() for one in pool}
    clips = {one.first for pool in library.tables.prompts.values() for one in pool}
    heard = [int(first) for _ in range(100) for first in batcher.draw().audio[:, 0]]
    share = sum(one in recorded for one in heard) / sum(one in recorded | clips for one in heard)
    assert 0.2 < share < 0.5


def test_the_talker_learns_with_instructions(
    voice_configs: Configs, library: Library, voice_tokenizer: PromptTokenizer
) -> None:
    settings = train_talker.Settings(patches=24, rate=Rate(3e-3, 3e-3, 1), compile=False)
    trainer = train_talker.Trainer(voice_configs[0], settings, library.store, CPU)
    batcher = Batcher(library.tables, prompt_frame(voice_tokenizer), settings.patches, seed=0)
    flows = [trainer.train(batcher.draw(), 0).flow.item() for _ in range(40)]
    assert np.mean(flows[-5:]) < 0.8 * np.mean(flows[:5])


def test_a_talker_starts_from_pieces(
    voice_configs: Configs, library: Library, tmp_path: Path
) -> None:
    settings = train_talker.Settings(patches=24, compile=False)
    first = train_talker.Trainer(voice_configs[0], settings, library.store, CPU)
    first.save(tmp_path / "run", spent=0.0)
    settings = replace(settings, seed=3)
    second = train_talker.Trainer(voice_configs[0], settings, library.store, CPU, tmp_path / "run")
    for name, tensor in second.talker.state_dict().items():
        assert torch.equal(tensor, first.average.tensors[name]), name
