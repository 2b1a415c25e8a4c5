"""A recording lies beside the latents that the talker makes of it, in step with it."""

import json
from pathlib import Path

import numpy as np
import pytest
import soundfile
import torch
from safetensors.torch import save_file

from cookbook.ming_mini import train_vae
from cookbook.ming_mini.aligned import SayAgain, heard_tape
from cookbook.ming_mini.corpus import Chunk, CorpusFolder, write_chunk
from cookbook.ming_mini.layout import configurations
from cookbook.ming_mini.schedule import Rate
from cookbook.ming_mini.tape import HeardTape
from cookbook.ming_mini.trained import trained_vae
from sglang_omni.commands.checkpoint import MING_MINI
from sglang_omni.models.ming.config import TalkerConfig, VAEConfig
from sglang_omni.models.ming.talker import Talker
from sglang_omni.models.ming.vae import AudioVAE

CPU = torch.device("cpu")
LATENT = 3528
PATCH = 4 * LATENT


@pytest.fixture
def again(small_talker: Talker, small_vae: AudioVAE) -> SayAgain:
    return SayAgain(small_talker, small_vae, seed=0)


def test_every_clip_is_on_the_tape_once(again: SayAgain, chunk: Chunk) -> None:
    tape = HeardTape(0.01, LATENT, 64, CPU)
    assert not again.fill(tape, [chunk])
    # The shortest speech has five patches.
    patches = [max(5, -(-len(chunk.clip(index)) // PATCH)) for index in range(4)]
    assert tape.length == sum(patches) * PATCH
    on_tape = {}
    for place in range(0, tape.length, PATCH):
        samples = tape.crops(torch.tensor([[place]]), PATCH)[0]
        on_tape[(samples * 32767).round().short().numpy().tobytes()] = place
    for index in range(4):
        assert chunk.clip(index)[:PATCH].tobytes() in on_tape
    latents = tape.heard(torch.tensor([[0]]), tape.length // LATENT)
    assert bool((latents.abs().sum(-1) > 0).all())


def test_a_full_tape_says_so(again: SayAgain, chunk: Chunk) -> None:
    tape = HeardTape(12 * PATCH / 44100 / 3600, LATENT, 64, CPU)
    assert again.fill(tape, [chunk])
    assert tape.length % PATCH == 0 and 5 * PATCH <= tape.length < 12 * PATCH


def test_crops_begin_with_a_latent() -> None:
    tape = HeardTape(0.01, LATENT, 64, CPU)
    count = 50
    samples = torch.arange(count).repeat_interleave(LATENT).short()
    tape.append_heard(samples, torch.arange(count)[:, None].expand(-1, 64).float())
    places = tape.places(8, 6 * LATENT, torch.Generator().manual_seed(1))
    crops = (tape.crops(places, 6 * LATENT) * 32767).round()
    torch.testing.assert_close(crops[:, ::LATENT], tape.heard(places, 6)[..., 0])


def recordings() -> Chunk:
    """The packed model's voice prompts: speech with its text."""
    folder = MING_MINI / "talker"
    voices = json.loads((folder / "data" / "voice_name.json").read_text())
    clips = [
        soundfile.read(folder / one["prompt_wav_path"], dtype="int16")[0] for one in voices.values()
    ]
    offsets = np.concatenate(([0], np.cumsum([len(clip) for clip in clips])))
    texts = tuple(one["prompt_text"] for one in voices.values())
    return Chunk(np.concatenate(clips), offsets, np.arange(len(clips)), texts)


def test_what_the_packed_talker_makes_is_in_step_with_the_recording(tmp_path: Path) -> None:
    _, config = configurations()
    talker = MING_MINI / "talker" / "model.safetensors"
    packed = MING_MINI / "talker" / "vae" / "model.safetensors"
    write_chunk(tmp_path / "chunk-00000.npz", recordings())
    tape = heard_tape(talker, packed, CorpusFolder(tmp_path), 0.01, CPU)
    count = tape.length // LATENT
    made = tape.heard(torch.tensor([[0]]), count)[0]
    with torch.no_grad():
        real = tape.crops(torch.tensor([[0]]), tape.length)
        wanted = trained_vae(config, packed, CPU).encoder(real).mean[0]
    own, late, early = (
        (made - wanted.roll(shift, 0)).square().mean().item() for shift in (0, 1, -1)
    )
    assert own < 0.8 * min(late, early), (own, late, early)


def test_a_decoder_learns_to_hear_a_talker(
    small_configs: tuple[TalkerConfig, VAEConfig],
    again: SayAgain,
    small_vae: AudioVAE,
    chunk: Chunk,
    tmp_path: Path,
) -> None:
    save_file(small_vae.state_dict(), tmp_path / "vae")
    tape = HeardTape(0.01, LATENT, 64, CPU)
    again.fill(tape, [chunk])
    settings = train_vae.Settings(
        batch=2, crop=6, rate=Rate(3e-3, 3e-3, 1), channels=4, adversarial_from=0.9
    )
    trainer = train_vae.Trainer(small_configs[1], settings, tape, CPU, tmp_path / "vae")
    reports = [trainer.train(progress=0) for _ in range(30)]
    losses = [report["mel"].item() for report in reports]
    assert np.mean(losses[-3:]) < 0.8 * np.mean(losses[:3])
    assert "nats" not in reports[0]
    assert {"judged", "fooled"} <= trainer.train(progress=1).keys()
