"""A few steps at a tiny size lower the losses; training can be interrupted."""

from dataclasses import replace
from itertools import chain
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from safetensors.torch import load_file, save_file

from cookbook.ming_mini import train_talker, train_vae
from cookbook.ming_mini.batches import Batcher, prompt_frame
from cookbook.ming_mini.corpus import Chunk
from cookbook.ming_mini.layers import start_from
from cookbook.ming_mini.layout import MINI, configurations
from cookbook.ming_mini.losses import FrameLoss
from cookbook.ming_mini.options import run_parser
from cookbook.ming_mini.schedule import Rate, RunClock
from cookbook.ming_mini.talker_init import new_talker
from cookbook.ming_mini.utterances import Library
from cookbook.ming_mini.vae_init import new_vae
from cookbook.ming_mini.weights import load_pieces, save_pieces
from cookbook.ming_mini_2.voices.layout import VOICES
from sglang_omni.entrypoints.startup.checkpoint import MING_MINI
from sglang_omni.models.ming.config import TalkerConfig, VAEConfig
from sglang_omni.models.ming.speech.prompt import PromptTokenizer
from sglang_omni.models.ming.speech.vae import ISTFT, AudioVAE

CPU = torch.device("cpu")
Configs = tuple[TalkerConfig, VAEConfig]


@pytest.fixture
def tape(chunk: Chunk) -> train_vae.SpeechBuffer:
    tape = train_vae.SpeechBuffer(0.01, CPU)
    tape.add([chunk])
    return tape


def test_the_vae_learns(small_configs: Configs, tape: train_vae.SpeechBuffer) -> None:
    settings = train_vae.Settings(
        batch=2, crop=6, rate=Rate(3e-3, 3e-3, 1), channels=4, adversarial_from=0.9
    )
    trainer = train_vae.Trainer(small_configs[1], settings, tape, CPU)
    losses = [trainer.train(progress=0)["mel"].item() for _ in range(12)]
    assert np.mean(losses[-3:]) < 0.8 * np.mean(losses[:3])
    assert {"judged", "fooled"} <= trainer.train(progress=1).keys()


def test_a_decoder_alone_learns_and_the_latents_stay(
    small_configs: Configs, tape: train_vae.SpeechBuffer, tmp_path: Path
) -> None:
    settings = train_vae.Settings(batch=2, crop=6, rate=Rate(3e-3, 3e-3, 1), channels=4)
    start = train_vae.Trainer(small_configs[1], settings, tape, CPU).vae
    save_file({k: v.bfloat16() for k, v in start.state_dict().items()}, tmp_path / "vae")
    trainer = train_vae.Trainer(small_configs[1], settings, tape, CPU, tmp_path / "vae")
    before = {k: v.clone() for k, v in trainer.vae.encoder.state_dict().items()}
    losses = [trainer.train(progress=0)["mel"].item() for _ in range(12)]
    assert np.mean(losses[-3:]) < 0.8 * np.mean(losses[:3])
    assert_equal(dict(trainer.vae.encoder.state_dict()), before)


def test_the_vae_goes_on_where_it_paused(
    small_configs: Configs, tape: train_vae.SpeechBuffer, tmp_path: Path
) -> None:
    settings = train_vae.Settings(batch=2, crop=6, channels=4, adversarial_from=0.0)
    first = train_vae.Trainer(small_configs[1], settings, tape, CPU)
    first.train(progress=0.5)
    first.save(tmp_path, spent=7.0)
    second = train_vae.Trainer(small_configs[1], replace(settings, seed=1), tape, CPU)
    assert second.resume(tmp_path) == 7.0
    assert second.step == 1
    assert_equal_states(first._parts(), second._parts())
    found = load_pieces(tmp_path, train_vae.VAE)
    assert_equal(found, first.average.tensors)


def assert_equal_states(ours: dict[str, Any], theirs: dict[str, Any]) -> None:
    for name, part in ours.items():
        assert_equal(part.state_dict(), theirs[name].state_dict())


def assert_equal(ours: Any, theirs: Any) -> None:
    """Nested states with the same tensors."""
    torch.testing.assert_close(ours, theirs, rtol=0, atol=0)


def test_a_run_that_was_never_begun_begins(
    small_configs: Configs, tape: train_vae.SpeechBuffer, tmp_path: Path
) -> None:
    trainer = train_vae.Trainer(small_configs[1], train_vae.Settings(channels=4), tape, CPU)
    assert trainer.resume(tmp_path) == 0.0


def test_a_clock_counts_what_earlier_calls_took() -> None:
    clock = RunClock(seconds=100, pause=50, before=99.0)
    assert clock.running
    assert 0.99 <= clock.progress < 1
    assert not RunClock(seconds=100, before=100.0).running
    assert not RunClock(seconds=100, pause=0).running


def test_frames_of_the_signal_itself_are_without_loss(generator: torch.Generator) -> None:
    istft = ISTFT(882)
    real = torch.randn(1, 12 * 882, generator=generator)
    frames = torch.nn.functional.pad(real, (istft.crop, istft.crop)).unfold(1, istft.size, 882)
    spectra = torch.fft.rfft(frames * istft.window)
    level, phase = FrameLoss(istft)(spectra.abs().log(), spectra.angle(), real, band=400)
    assert level < 1e-4
    assert phase < 1e-4
    # What the loss compares with is what the product's inverse transform needs.
    made = istft(istft.invert_spectra(spectra.abs(), spectra.angle()))
    torch.testing.assert_close(made[:, 3000:-3000], real[:, 3000:-3000], rtol=0, atol=1e-4)


@pytest.fixture
def library(small_vae: AudioVAE, chunk: Chunk, tokenizer: PromptTokenizer) -> Library:
    library = Library(small_vae, 200, CPU)
    train_talker.add_chunks(library, tokenizer, iter([chunk]))
    return library


def test_short_clips_are_said_in_five_patches(library: Library) -> None:
    assert min(library.tables.by_patches) == 5
    assert library.tables.count == 4
    assert {one.speaker for one in library.tables.prompts[1]} == {1}


def test_an_encoded_clip_has_the_latents_the_product_would_give(
    library: Library, small_vae: AudioVAE, chunk: Chunk, tokenizer: PromptTokenizer
) -> None:
    (said,) = [
        one
        for table in library.tables.by_patches.values()
        for one in table
        if list(one.tokens) == tokenizer.encode(chunk.texts[3])
    ]
    clip = torch.from_numpy(chunk.clip(3).astype(np.float32) / 32767)
    padded = torch.nn.functional.pad(clip, (0, said.patches * 14112 - len(clip)))
    with torch.no_grad():
        mean = small_vae.encoder(padded[None]).mean[0].unflatten(0, (-1, 4))
    stored = library.store.mean(torch.arange(said.first, said.first + said.patches))
    torch.testing.assert_close(stored, mean, rtol=1e-2, atol=1e-2)


def test_a_shifted_voice_prompt_begins_within_a_latent(
    library: Library, small_vae: AudioVAE, chunk: Chunk, tokenizer: PromptTokenizer
) -> None:
    shifted = Library(small_vae, 200, CPU, shifted=1.0)
    train_talker.add_chunks(shifted, tokenizer, iter([chunk]))
    # What is said begins where a latent does in both; only prompts differ.
    assert shifted.tables.by_patches.keys() == library.tables.by_patches.keys()
    prompts = (chain(*one.tables.prompts.values()) for one in (shifted, library))
    for ours, theirs in zip(*prompts, strict=True):
        assert (ours.first, ours.patches) == (theirs.first, theirs.patches)
        places = torch.arange(ours.first, ours.first + ours.patches)
        assert not torch.allclose(shifted.store.mean(places), library.store.mean(places))
    spoken = [one for some in library.tables.by_patches.values() for one in some]
    for one in spoken:
        places = torch.arange(one.first, one.first + one.patches)
        torch.testing.assert_close(shifted.store.mean(places), library.store.mean(places))


def test_what_is_held_out_is_measured_and_not_learnt(
    small_configs: Configs,
    small_vae: AudioVAE,
    library: Library,
    chunk: Chunk,
    tokenizer: PromptTokenizer,
) -> None:
    held = train_talker.HeldOut(Library(small_vae, 200, CPU), tokenizer, seed=0)
    settings = train_talker.Settings(patches=24)
    trainer = train_talker.Trainer(small_configs[0], settings, library.store, CPU)
    assert held.report(trainer) == {}
    others = [replace(chunk, texts=(f"{number}",) * 4) for number in range(3)]
    assert list(held.take(others)) == [others[0], others[2]]
    before = {name: one.clone() for name, one in trainer.talker.state_dict().items()}
    report = held.report(trainer)
    assert report["held out"] > 0
    assert held.report(trainer) == report
    assert all(torch.equal(one, before[name]) for name, one in trainer.talker.state_dict().items())


def test_the_talker_learns(
    small_configs: Configs, library: Library, tokenizer: PromptTokenizer
) -> None:
    settings = train_talker.Settings(patches=24, rate=Rate(3e-3, 3e-3, 1), compile=False)
    trainer = train_talker.Trainer(small_configs[0], settings, library.store, CPU)
    batcher = Batcher(library.tables, prompt_frame(tokenizer), settings.patches, seed=0)
    flows = [trainer.train(batcher.draw(), 0).flow.item() for _ in range(40)]
    assert np.mean(flows[-5:]) < 0.8 * np.mean(flows[:5])


def test_the_talker_goes_on_where_it_paused(
    small_configs: Configs, library: Library, tokenizer: PromptTokenizer, tmp_path: Path
) -> None:
    settings = train_talker.Settings(patches=24, compile=False)
    first = train_talker.Trainer(small_configs[0], settings, library.store, CPU)
    batcher = Batcher(library.tables, prompt_frame(tokenizer), settings.patches, seed=0)
    first.train(batcher.draw(), 0)
    first.save(tmp_path, spent=7.0)
    second = train_talker.Trainer(small_configs[0], replace(settings, seed=1), library.store, CPU)
    assert second.resume(tmp_path) == 7.0
    assert second.step == 1
    assert_equal_states(first._parts(), second._parts())
    assert_equal(load_pieces(tmp_path, train_talker.TALKER), first.average.tensors)


def test_a_packed_vae_encodes(tmp_path: Path) -> None:
    config = configurations(VOICES)[1]
    packed = MING_MINI / "talker" / "vae" / "model.safetensors"
    vae = train_talker.trained_vae(config, packed, CPU)
    save_pieces(vae.state_dict(), tmp_path, train_vae.VAE)
    again = train_talker.trained_vae(config, tmp_path, CPU)
    assert_equal(dict(vae.state_dict()), dict(again.state_dict()))


def test_a_packed_talker_is_trained_on(library: Library) -> None:
    settings = train_talker.Settings(patches=24, compile=False)
    packed = MING_MINI / "talker" / "model.safetensors"
    trainer = train_talker.Trainer(configurations(VOICES)[0], settings, library.store, CPU, packed)
    assert_equal(trainer.talker.stop_head.weight, load_file(packed)["stop_head.weight"].float())


def test_a_talker_starts_from_one_with_fewer_layers() -> None:
    small, large = (
        new_talker(configurations(layout)[0], seed) for seed, layout in ((1, MINI), (2, VOICES))
    )
    start_from(large, small.state_dict())
    grown = large.state_dict()
    assert_equal({name: grown[name] for name in small.state_dict()}, dict(small.state_dict()))
    x = torch.randn(1, 5, 256)
    with torch.no_grad():
        assert_equal(large.model.forward_full(x), small.model.forward_full(x))


def test_a_talker_does_not_start_from_one_that_lacks_a_part() -> None:
    config = configurations()[0]
    stored = dict(new_talker(config, 1).state_dict())
    del stored["model.layers.1.mlp.down_proj.weight"]
    with pytest.raises(ValueError, match=r"layers\.1\.mlp\.down_proj"):
        start_from(new_talker(config, 2), stored)


@pytest.mark.parametrize("units", [64, 80])
def test_a_vae_starts_from_one_with_fewer_and_narrower_layers(
    small_configs: Configs, units: int
) -> None:
    """The small one has 64 units."""
    config = small_configs[1]
    backbone = replace(config.encoder.backbone, num_hidden_layers=3, intermediate_size=units)
    deeper = replace(config, encoder=replace(config.encoder, backbone=backbone))
    small, large = new_vae(config, 1), new_vae(deeper, 2)
    assert len(large.encoder.encoder.layers) > len(small.encoder.encoder.layers)
    start_from(large, small.state_dict())
    wave = torch.randn(1, 6 * config.samples_per_latent) / 10
    with torch.no_grad():
        torch.testing.assert_close(
            large.encoder(wave).mean, small.encoder(wave).mean, rtol=0, atol=1e-5
        )


def test_a_vae_does_not_start_from_one_with_wider_layers(small_configs: Configs) -> None:
    config = small_configs[1]
    backbone = replace(config.encoder.backbone, intermediate_size=80)
    wider = replace(config, encoder=replace(config.encoder, backbone=backbone))
    with pytest.raises(ValueError, match=r"mlp\.\w+_proj\.weight"):
        start_from(new_vae(config, 1), new_vae(wider, 2).state_dict())


def test_large_weights_travel_in_pieces(tmp_path: Path) -> None:
    tensors = {name: torch.randn(2_000_000) for name in "abc"}
    paths = save_pieces(tensors, tmp_path, "model")
    assert len(paths) == 3
    again = load_pieces(tmp_path, "model")
    assert all(torch.equal(again[name], tensor) for name, tensor in tensors.items())


@pytest.mark.parametrize("seconds", ["0", "-3", "nan"])
def test_a_run_that_could_not_end_does_not_begin(seconds: str) -> None:
    parser = run_parser(None, train_vae.Settings(), 1e-3)
    with pytest.raises(SystemExit):
        parser.parse_args(["--corpus", "a", "--output", "b", "--seconds", seconds])
