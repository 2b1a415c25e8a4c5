"""Train the audio VAE for a given time, on a corpus that may still grow.

    python -m cookbook.ming_mini.train_vae --corpus DIR --output DIR --seconds 360

`--pause` ends a call before the run is over; the next call continues from the state in `--output`.
The encoder's posterior has a fixed budget in nats per latent: below it information is free, above
it every nat costs. Such a posterior has unit variance overall, which is what the talker's flow
starts from. `--decoder-of FILE` trains the decoder of a packed VAE alone: the latents stay the
same, and with them a talker that generates them.
"""

import argparse
from collections.abc import Iterable
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
import torch
import torch.nn.functional as F
from torch import Tensor

from cookbook.ming_mini.compilation import choose_runner
from cookbook.ming_mini.corpus import Chunk, CorpusFolder
from cookbook.ming_mini.ctc_recogniser import CTCRecogniser, load_ctc_recogniser, perceptual_loss
from cookbook.ming_mini.cuda_graphs import StepReplay
from cookbook.ming_mini.discriminators import (
    Discriminators,
    adversarial_loss,
    discriminator_loss,
    feature_loss,
)
from cookbook.ming_mini.layers import start_from
from cookbook.ming_mini.layout import configurations
from cookbook.ming_mini.losses import FrameLoss, SpectralLoss, divergence, phase_band
from cookbook.ming_mini.optimizer import Optimizer
from cookbook.ming_mini.options import run_parser, settings_from_args
from cookbook.ming_mini.schedule import MeanMeter, Rate, RunClock
from cookbook.ming_mini.vae_init import new_vae
from cookbook.ming_mini.vocoder import HOP, RATE
from cookbook.ming_mini.weights import (
    PIECE_BYTES,
    Average,
    load_state,
    load_weights,
    save_pieces,
    save_state,
)
from sglang_omni.models.ming.config import VAEConfig
from sglang_omni.models.ming.speech.vae import MAX_MAGNITUDE, Posterior

VAE = "vae"
VAE_RATE, DISCRIMINATOR_RATE = Rate(1e-3, 5e-5), Rate(5e-4, 1e-4)


@dataclass(frozen=True)
class Settings:
    """The settings of the VAE's training.

    `crop` is in latents of 80 ms, `budget` in nats per latent. `adversarial_from` is the share of
    the run after which the discriminators take part. With `compile`, what follows an STFT is
    compiled for a GPU. `perceptual` is the weight of a recogniser's loss, if there is one. The
    averaged weights are written in pieces of at most `split_bytes`.
    """

    batch: int = 32
    crop: int = 24
    budget: float = 120.0
    over_budget: float = 0.05
    rate: Rate = VAE_RATE
    adversarial_rate: Rate = DISCRIMINATOR_RATE
    adversarial_from: float = 0.35
    adversarial: float = 0.1
    features: float = 1.0
    level: float = 0.3
    phase: float = 0.5
    perceptual: float = 2.0
    channels: int = 32
    compile: bool = True
    record: bool = True
    seed: int = 0
    hours: float = 6.0
    split_bytes: int = PIECE_BYTES


Stage = tuple[int, bool]
"""What a step asks for: the bins whose phases count, and whether there are judges."""


class SpeechBuffer:
    """Speech on the device as one row of int16, from which random crops are cut."""

    def __init__(self, hours: float, device: torch.device, align: int = HOP) -> None:
        """Make room for hours of speech; crops start at multiples of `align` samples."""
        self._align = align
        self._samples = torch.zeros(int(hours * 3600 * RATE), dtype=torch.int16, device=device)
        self.length = 0

    @property
    def room(self) -> int:
        """Return the number of samples that there is room for altogether."""
        return len(self._samples)

    def add(self, chunks: Iterable[Chunk]) -> None:
        """Append chunks while there is room."""
        for chunk in chunks:
            self.append(chunk.samples)

    def append(self, samples: np.ndarray) -> None:
        """Append samples int16 [n] while there is room."""
        new = torch.from_numpy(samples[: len(self._samples) - self.length])
        self._samples[self.length : self.length + len(new)] = new.to(self._samples.device)
        self.length += len(new)

    def places(self, count: int, samples: int, generator: torch.Generator) -> Tensor:
        """Return the starts of random crops: int64 [count, 1] on the host.

        There are `count` crops of `samples` samples. They start at a frame, like clips, so that the
        pulses of steady speech keep their positions.
        """
        frames = (self.length - samples) // self._align
        return self._align * torch.randint(frames, (count, 1), generator=generator)

    def crops(self, places: Tensor, samples: int) -> Tensor:
        """Return float crops [count, samples] in [-1, 1] from places [count, 1] on the device."""
        index = places + torch.arange(samples, device=places.device)
        return self._samples[index].float() / 32767


def augment(crops: Tensor, draws: Tensor) -> Tensor:
    """Vary the loudness of crops (6 dB either way); one in eight is silent in a part of it.

    `draws` [3, count, 1] are uniform.
    """
    samples = crops.shape[1]
    gain, edge, kind = 2 ** (2 * draws[0] - 1), draws[1] * samples, draws[2] * 16
    place = torch.arange(samples, device=crops.device)
    silent = ((kind < 1) & (place < edge)) | ((kind > 15) & (place >= edge))
    return crops * gain * ~silent


class Trainer:
    """The VAE, its discriminators and their training state."""

    def __init__(
        self,
        config: VAEConfig,
        settings: Settings,
        tape: SpeechBuffer,
        device: torch.device,
        packed: Path | None = None,
        start: Path | None = None,
        recogniser: CTCRecogniser | None = None,
    ) -> None:
        """Build the VAE.

        With `packed`, the file or the folder of a trained VAE, only its decoder is trained; with
        `start`, training starts from the whole of it, which may have fewer and narrower layers.
        With `recogniser`, its perceptual loss is part of the loss.
        """
        self.settings, self.device, self._tape = settings, device, tape
        self.vae = new_vae(config, settings.seed).to(device)
        self._knows_phases, self._recogniser = bool(packed or start), recogniser
        if start is not None:
            start_from(self.vae, load_weights(start, VAE))
        if packed is not None:
            self.vae.load_state_dict(load_weights(packed, VAE))
            self.vae.encoder.requires_grad_(False)
        self._run = choose_runner(settings.compile, device)
        self.judges = Discriminators(channels=settings.channels, run=self._run).to(device)
        self.spectral = SpectralLoss(run=self._run).to(device)
        self.frames = FrameLoss(self.vae.decoder.head.istft).to(device)
        self.noise = torch.Generator(device).manual_seed(settings.seed)
        self.places = torch.Generator().manual_seed(settings.seed)
        self.step = 0
        learnt = (one for one in self.vae.parameters() if one.requires_grad)
        self._descent = Optimizer(learnt, betas=(0.8, 0.98), decay=0.01)
        self._judge_descent = Optimizer(self.judges.parameters(), betas=(0.5, 0.9), decay=0.0)
        self._replay = StepReplay(self._step, self.noise, settings.record)
        self.average = Average(self.vae)

    def resume(self, folder: Path) -> float:
        """Continue the run whose state is in `folder`. Returns the seconds that it took so far."""
        state = load_state(folder, VAE, self.device)
        if state is None:
            return 0.0
        for name, part in self._parts().items():
            part.load_state_dict(state[name])
        self.step = state["step"]
        for drawn in (self.noise, self.places):
            drawn.manual_seed(self.settings.seed + self.step)
        return float(state["spent"])

    def save(self, folder: Path, spent: float) -> None:
        """Write the averaged VAE, and the state of a run that took `spent` seconds so far."""
        parts = {name: part.state_dict() for name, part in self._parts().items()}
        save_state({**parts, "step": self.step, "spent": spent}, folder, VAE)
        save_pieces(self.average.tensors, folder, VAE, self.settings.split_bytes)

    def _parts(self) -> dict[str, Any]:
        """Return everything that has a state."""
        return {
            "vae": self.vae,
            "judges": self.judges,
            "average": self.average,
            "optimizer": self._descent,
            "judge_optimizer": self._judge_descent,
        }

    def train(self, progress: float) -> dict[str, Tensor]:
        """Run one step. Returns its losses, which the next step overwrites."""
        settings = self.settings
        rates = [
            rate.at(progress, self.step) for rate in (settings.rate, settings.adversarial_rate)
        ]
        draws = torch.rand(3, settings.batch, 1, generator=self.places)
        places = self._tape.places(settings.batch, self._samples, self.places)
        size = self.vae.decoder.head.istft.size
        band = phase_band(1.0 if self._knows_phases else progress, size)
        stage = band, progress >= settings.adversarial_from
        report = self._replay(stage, (torch.tensor(rates), draws, places))
        self.average.update()
        self.step += 1
        return report

    @property
    def _samples(self) -> int:
        """Return the number of samples of a crop."""
        return self.settings.crop * self.vae.config.samples_per_latent

    def _step(self, stage: Stage, inputs: tuple[Tensor, ...]) -> dict[str, Tensor]:
        """Run one step on the device."""
        band, judged = stage
        rates, draws, places = inputs
        self._descent.rate.copy_(rates[0])
        self._judge_descent.rate.copy_(rates[1])
        real = augment(self._tape.crops(places, self._samples), draws)
        made, posterior, framewise = self.reconstruct(real, band)
        report = self._judge(real, made.detach()) if judged else {}
        return report | self._improve(real, made, posterior, framewise, judged)

    def reconstruct(self, real: Tensor, band: int) -> tuple[Tensor, Posterior, Tensor]:
        """Encode, sample and decode waveforms [batch, samples].

        The third result has the frames' level loss, and phase loss below `band`.
        """
        posterior = self.vae.encoder(real)
        noise = torch.randn(posterior.mean.shape, generator=self.noise, device=self.device)
        decoder = self.vae.decoder
        hidden = decoder.decoder.forward_full(decoder.embed_latents(posterior.sample(noise)))
        # The product's head, in two steps.
        log_magnitude, phase = decoder.head.out(hidden).chunk(2, dim=-1)
        istft = decoder.head.istft
        made = istft(istft.invert_spectra(log_magnitude.exp().clamp_max(MAX_MAGNITUDE), phase))
        return made, posterior, torch.stack(self.frames(log_magnitude, phase, real, band))

    def _improve(
        self,
        real: Tensor,
        made: Tensor,
        posterior: Posterior,
        framewise: Tensor,
        judged: bool,
    ) -> dict[str, Tensor]:
        """Run one step of the VAE."""
        settings = self.settings
        mel, magnitude = self.spectral(made, real)
        nats = divergence(posterior)
        excess = F.relu(nats - settings.budget) + 1e-3 * nats
        level, phase = framewise
        loss = mel + 0.5 * magnitude + settings.over_budget * excess
        loss = loss + settings.level * level + settings.phase * phase
        report = {"mel": mel, "magnitude": magnitude, "nats": nats, "level": level, "phase": phase}
        if judged:
            fooled, alike = self._deceive(real, made)
            loss = loss + settings.adversarial * fooled + settings.features * alike
            report |= {"fooled": fooled, "features": alike}
        if self._recogniser is not None:
            with torch.autocast(self.device.type, torch.bfloat16):
                perceptual = perceptual_loss(self._recogniser, made, real)
            loss, report = (
                loss + settings.perceptual * perceptual,
                report | {"perceptual": perceptual},
            )
        self._descent.step(loss)
        return {name: value.detach() for name, value in report.items()}

    def _deceive(self, real: Tensor, made: Tensor) -> tuple[Tensor, Tensor]:
        self.judges.requires_grad_(False)
        with torch.autocast(self.device.type, torch.bfloat16):
            seen = self.judges(made)
            with torch.no_grad():
                wanted = self.judges(real)
        self.judges.requires_grad_(True)
        return adversarial_loss(seen), self._run(feature_loss, wanted, seen)

    def _judge(self, real: Tensor, made: Tensor) -> dict[str, Tensor]:
        """Run one step of the discriminators."""
        with torch.autocast(self.device.type, torch.bfloat16):
            loss = discriminator_loss(self.judges(real), self.judges(made))
        self._judge_descent.step(loss)
        return {"judged": loss.detach()}


def run(
    trainer: Trainer, tape: SpeechBuffer, corpus: CorpusFolder, output: Path, clock: RunClock
) -> None:
    """Train until the time is over; prints every five seconds, saves every minute."""
    tape.add(corpus.wait(120))
    meter, printed, saved = MeanMeter(), clock.elapsed, clock.elapsed
    while clock.running:
        report = trainer.train(clock.progress)
        if trainer.step % 10 == 0:
            meter.add({name: value.item() for name, value in report.items()})
        if clock.elapsed - printed > 5:
            printed = clock.elapsed
            hours = tape.length / RATE / 3600
            print(f"{printed:.0f} s, step {trainer.step}, {hours:.2f} h", meter.flush(), flush=True)
            tape.add(corpus.new_chunks())
        if clock.elapsed - saved > 60:
            saved = clock.elapsed
            trainer.save(output, clock.spent)
    trainer.save(output, clock.spent)


def parse_arguments(
    description: str | None = __doc__, defaults: Settings = Settings()
) -> tuple[argparse.Namespace, Settings]:
    """Parse the command line. Returns the arguments and the settings."""
    parser = run_parser(description, defaults, defaults.rate.peak)
    parser.add_argument("--decoder-of", type=Path, help="file or folder of a trained VAE")
    parser.add_argument("--start", type=Path, help="the same, to train all of it further")
    parser.add_argument("--recogniser", type=Path, help="folder of a trained recogniser")
    args = parser.parse_args()
    rate = Rate(args.peak, args.peak / 20)
    return args, replace(defaults, rate=rate, **settings_from_args(args, defaults))


def train(
    args: argparse.Namespace,
    settings: Settings,
    config: VAEConfig,
    corpus: CorpusFolder,
    align: int = HOP,
) -> Trainer:
    """Train, or continue to train, as the command line says; crops start at multiples of `align`.

    Returns the trainer.
    """
    torch.backends.cuda.matmul.allow_tf32 = torch.backends.cudnn.allow_tf32 = True
    device = torch.device(args.device)
    tape = SpeechBuffer(settings.hours, device, align)
    recogniser = None if args.recogniser is None else load_ctc_recogniser(args.recogniser, device)
    trainer = Trainer(config, settings, tape, device, args.decoder_of, args.start, recogniser)
    clock = RunClock(args.seconds, args.pause, trainer.resume(args.output))
    run(trainer, tape, corpus, args.output, clock)
    print(f"done: {trainer.step} steps in {clock.elapsed:.0f} s")
    return trainer


def main() -> None:
    """Train Ming-mini's VAE."""
    args, settings = parse_arguments()
    train(args, settings, configurations()[1], CorpusFolder(args.corpus))


if __name__ == "__main__":
    main()
