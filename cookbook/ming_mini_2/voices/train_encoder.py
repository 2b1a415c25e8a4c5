"""Teach a trained VAE's encoder to hear recordings, for a given time, on a corpus that may grow.

    python -m cookbook.ming_mini_2.voices.train_encoder --corpus DIR --vae DIR --output DIR

Clips have locked pulses; what people upload has not, and its latents would be those of nothing that
a talker knows. The encoder learns to give a recording the posterior of the same speech with locked
pulses, and to keep the posterior of those. So the latents stay, and with them the decoder and a
talker that generates them. Recordings are also quieter or louder, noisy and of either sign, since
microphones differ, and aim at clean ones of the usual loudness.

What is printed are errors of the posterior (`error_of`), of recordings and of locked pulses;
`held out` are those of recordings that are not learnt from. `--vae` is the folder of a training run
or the file of a packed VAE, and `--output` gets the whole VAE.
"""

import argparse
from collections.abc import Iterable
from copy import deepcopy
from dataclasses import dataclass, replace
from pathlib import Path

import torch
from torch import Tensor

from cookbook.ming_mini.corpus import Chunk, CorpusFolder
from cookbook.ming_mini.layout import configurations
from cookbook.ming_mini.optimizer import Optimizer
from cookbook.ming_mini.options import run_parser, settings_from_args
from cookbook.ming_mini.schedule import MeanMeter, Rate, RunClock
from cookbook.ming_mini.train_talker import trained_vae
from cookbook.ming_mini.train_vae import VAE, SpeechBuffer
from cookbook.ming_mini.vocoder import RATE
from cookbook.ming_mini.weights import PIECE_BYTES, Average, save_pieces
from cookbook.ming_mini_2.voices.corpus import VoiceCorpusFolder
from cookbook.ming_mini_2.voices.layout import VOICES
from cookbook.ming_mini_2.voices.pulses import LATENT
from sglang_omni.models.ming.speech.vae import AudioVAE, Posterior

HELD_OUT_EVERY, HELD_OUT_HOURS = 30, 0.2
"""Of so many chunks one is not learnt from, as long as there is room for it."""
GAIN_OCTAVES = 1.3
"""Recordings are up to 8 dB quieter or louder."""
NOISE_EXPONENTS = (-4.0, -2.3)
"""The powers of ten that the level of their noise is between; speech has 0.1."""
DEVIATION_FLOOR = 0.3
"""The least deviation that errors of means are measured in. The VAE states some dimensions to 0.01
and leaves others unused, with 1: neither the first nor the last may outweigh all others."""
ENCODER_RATE = Rate(6e-4, 1e-5)


@dataclass(frozen=True)
class Settings:
    """The settings of the encoder's training.

    A step has `batch` crops of `crop` latents. `keep` is the weight of locked pulses beside
    recordings.
    """

    batch: int = 48
    crop: int = 40
    rate: Rate = ENCODER_RATE
    keep: float = 2.0
    seed: int = 0
    hours: float = 20.0
    split_bytes: int = PIECE_BYTES


def error_of(wanted: Posterior, found: Posterior) -> Tensor:
    """Return how far a posterior is from the wanted one, summed over a latent: the mean of latents.

    It is the squared error of the mean, in units of the wanted deviation and `DEVIATION_FLOOR`
    together, and that of the deviation's logarithm.
    """
    unit = wanted.std.square() + DEVIATION_FLOOR**2
    off = (wanted.mean - found.mean).square() / unit
    spread = (found.std / wanted.std).log().square()
    return (off + spread).sum(-1).mean()


def disturb(crops: Tensor, random: torch.Generator) -> Tensor:
    """Return crops [count, samples] at other levels, half of them reversed in sign, with noise."""
    draws = torch.rand(3, len(crops), 1, generator=random, device=crops.device)
    low, high = NOISE_EXPONENTS
    level = 10 ** (low + (high - low) * draws[1])
    noise = torch.randn(crops.shape, generator=random, device=crops.device)
    gain = 2 ** (GAIN_OCTAVES * (2 * draws[0] - 1)) * torch.where(draws[2] < 0.5, -1.0, 1.0)
    return crops * gain + level * noise


class Pairs:
    """Recordings and their locked pulses on the device, cut where latents begin."""

    def __init__(self, hours: float, device: torch.device) -> None:
        self._tapes = [SpeechBuffer(hours, device, LATENT) for _ in range(2)]
        self._device = device

    @property
    def hours(self) -> float:
        """Return the hours of recordings."""
        return self._tapes[0].length / RATE / 3600

    def add(self, chunks: Iterable[Chunk]) -> None:
        """Append the recordings of chunks while there is room."""
        for chunk in chunks:
            if chunk.recordings is not None:
                self._tapes[0].append(chunk.recordings.samples)
                self._tapes[1].append(chunk.recordings.locked)

    def draw(self, settings: Settings, places: torch.Generator) -> tuple[Tensor, Tensor] | None:
        """Return crops [batch, samples] of recordings and of locked pulses; None if too few."""
        samples = settings.crop * LATENT
        if self._tapes[0].length <= samples:
            return None
        starts = self._tapes[0].places(settings.batch, samples, places).to(self._device)
        recorded, locked = (tape.crops(starts, samples) for tape in self._tapes)
        return recorded, locked


class Trainer:
    """The VAE whose encoder is trained, and the encoder as it was."""

    def __init__(self, vae: AudioVAE, settings: Settings, device: torch.device) -> None:
        """Take a frozen VAE on the device."""
        self.settings, self.vae, self.step = settings, vae, 0
        self._former = deepcopy(vae.encoder)
        vae.encoder.requires_grad_(True)
        self._descent = Optimizer(vae.encoder.parameters(), betas=(0.9, 0.98), decay=0.0)
        self.random = torch.Generator(device).manual_seed(settings.seed)
        self.average = Average(vae)

    def train(self, recorded: Tensor, locked: Tensor, progress: float) -> dict[str, float]:
        """Run one step on crops. Returns its errors."""
        self._descent.rate.copy_(torch.tensor(self.settings.rate.at(progress, self.step)))
        heard, kept = self._errors(disturb(recorded, self.random), locked)
        self._descent.step(heard + self.settings.keep * kept)
        self.average.update()
        self.step += 1
        return {"recordings": heard.item(), "locked": kept.item()}

    @torch.no_grad()
    def measure(self, recorded: Tensor, locked: Tensor) -> float:
        """Return the error of recordings as they are."""
        return float(self._errors(recorded, locked)[0])

    def _errors(self, recorded: Tensor, locked: Tensor) -> tuple[Tensor, Tensor]:
        with torch.no_grad():
            wanted = self._former(locked)
        encoder = self.vae.encoder
        return error_of(wanted, encoder(recorded)), error_of(wanted, encoder(locked))


class HeldOut:
    """Recordings that are not learnt from."""

    def __init__(self, device: torch.device) -> None:
        self._pairs, self._count = Pairs(HELD_OUT_HOURS, device), 0

    def take(self, chunks: Iterable[Chunk]) -> Iterable[Chunk]:
        """Yield the chunks that are learnt from; of every `HELD_OUT_EVERY` the first is kept."""
        for chunk in chunks:
            self._count += 1
            if self._count % HELD_OUT_EVERY == 1:
                self._pairs.add([chunk])
            else:
                yield chunk

    def report(self, trainer: Trainer) -> dict[str, float]:
        """Return the error of one batch, always drawn the same way; nothing without any."""
        crops = self._pairs.draw(trainer.settings, torch.Generator().manual_seed(0))
        return {} if crops is None else {"held out": round(trainer.measure(*crops), 2)}


def run(
    trainer: Trainer, corpus: CorpusFolder, output: Path, clock: RunClock, device: torch.device
) -> None:
    """Train until the time is over; prints every five seconds, and saves at the end."""
    output.mkdir(parents=True, exist_ok=True)
    settings, held = trainer.settings, HeldOut(device)
    pairs, places = Pairs(settings.hours, device), torch.Generator().manual_seed(settings.seed)
    pairs.add(held.take(corpus.wait(120)))
    meter, printed = MeanMeter(), clock.elapsed
    while clock.running:
        crops = pairs.draw(settings, places)
        if crops is not None:
            meter.add(trainer.train(*crops, clock.progress))
        if clock.elapsed - printed > 5 or crops is None:
            printed = clock.elapsed
            done = f"{printed:.0f} s, step {trainer.step}, {pairs.hours:.2f} h"
            print(done, meter.flush() | held.report(trainer), flush=True)
            pairs.add(held.take(corpus.new_chunks()))
    save_pieces(trainer.average.tensors, output, VAE, settings.split_bytes)


def parse_arguments() -> tuple[argparse.Namespace, Settings]:
    """Parse the command line. Returns the arguments and the settings."""
    defaults = Settings()
    parser = run_parser(__doc__, defaults, defaults.rate.peak)
    parser.add_argument("--vae", type=Path, required=True)
    args = parser.parse_args()
    rate = replace(defaults.rate, peak=args.peak)
    return args, replace(defaults, rate=rate, **settings_from_args(args, defaults))


def main() -> None:
    """Train the encoder of a VAE."""
    args, settings = parse_arguments()
    torch.backends.cuda.matmul.allow_tf32 = torch.backends.cudnn.allow_tf32 = True
    device = torch.device(args.device)
    vae = trained_vae(configurations(VOICES)[1], args.vae, device)
    trainer = Trainer(vae, settings, device)
    clock = RunClock(args.seconds, args.pause)
    run(trainer, VoiceCorpusFolder(args.corpus), args.output, clock, device)
    print(f"done: {trainer.step} steps in {clock.elapsed:.0f} s")


if __name__ == "__main__":
    main()
