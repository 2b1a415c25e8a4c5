"""Train the CTC recogniser for a given time, on a corpus that may still grow.

    python -m cookbook.ming_mini_2.voices.train_ctc_recogniser --corpus DIR --output DIR

It reads letters of whole clips (connectionist temporal classification). `letters` in what is
printed is the share of letters that are wrong in clips which it does not learn from; it should fall
below a half within the first two thousand steps.
"""

import argparse
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace
from pathlib import Path
from random import Random

import torch
import torch.nn.functional as F
from torch import Tensor

from cookbook.ming_mini.corpus import Chunk, CorpusFolder
from cookbook.ming_mini.ctc_recogniser import (
    BLANK,
    CTC_RECOGNISER,
    SAMPLES_A_ROW,
    CTCRecogniser,
    decode_best_path,
    decode_letters,
    encode_letters,
)
from cookbook.ming_mini.optimizer import Optimizer
from cookbook.ming_mini.options import run_parser, settings_from_args
from cookbook.ming_mini.schedule import MeanMeter, Rate, RunClock
from cookbook.ming_mini.train_vae import SpeechBuffer
from cookbook.ming_mini.vocoder import RATE
from cookbook.ming_mini.weights import Average, save_pieces
from measurement.edit_distance import edit_distance

LADDER = (1.5, 2.0, 3.0, 4.0, 6.0, 8.0, 12.0)
"""Seconds that clips are padded to; longer ones are left out."""
HELD_OUT_EVERY = 30
"""Of so many chunks one is not learnt from."""
LEARNING_RATE = Rate(1e-3, 2e-5, 300)


@dataclass(frozen=True)
class Settings:
    """The settings of the recogniser's training; `batch_seconds` are those of a step's clips."""

    batch_seconds: float = 240.0
    rate: Rate = LEARNING_RATE
    seed: int = 0
    hours: float = 20.0


@dataclass(frozen=True)
class Spoken:
    """A clip on the tape: its first sample, its number of samples, and its letters' classes."""

    first: int
    samples: int
    letters: tuple[int, ...]


@dataclass(frozen=True)
class Batch:
    """Waveforms [batch, samples], the number of rows of each, and the letters of each."""

    waveforms: Tensor
    rows: Tensor
    letters: list[tuple[int, ...]]


class Clips:
    """Clips on the device, drawn in batches of about equal length."""

    def __init__(self, hours: float, device: torch.device, seed: int) -> None:
        self._tape, self._device, self._rng = SpeechBuffer(hours, device, 1), device, Random(seed)
        self._pools: dict[float, list[Spoken]] = {}

    @property
    def hours(self) -> float:
        """Return the hours of speech."""
        return self._tape.length / RATE / 3600

    @property
    def is_empty(self) -> bool:
        """Return whether there is nothing to draw."""
        return not self._pools

    def add(self, chunks: Iterable[Chunk]) -> None:
        """Append the clips of chunks while there is room."""
        for chunk in chunks:
            first = self._tape.length
            self._tape.add([chunk])
            for index, text in enumerate(chunk.texts):
                begin, end = chunk.offsets[index : index + 2].tolist()
                self._append(Spoken(first + begin, end - begin, tuple(encode_letters(text))))

    def _append(self, clip: Spoken) -> None:
        """Put a clip with letters to those of its length, if it fits with its padding."""
        fitting = [most for most in LADDER if clip.samples <= most * RATE]
        if fitting and clip.letters and clip.first + fitting[0] * RATE <= self._tape.room:
            self._pools.setdefault(fitting[0], []).append(clip)

    def draw(self, seconds: float) -> Batch:
        """Draw clips of one step of the ladder, `seconds` together with their padding."""
        weights = [most * len(pool) for most, pool in self._pools.items()]
        (most,) = self._rng.choices(list(self._pools), weights)
        clips = self._rng.choices(self._pools[most], k=max(1, int(seconds / most)))
        first = torch.tensor([[clip.first] for clip in clips], device=self._device)
        lengths = torch.tensor([[clip.samples] for clip in clips], device=self._device)
        samples = round(most * RATE)
        # What lies behind a clip is another one.
        inside = torch.arange(samples, device=self._device) < lengths
        rows = 1 + lengths[:, 0] // SAMPLES_A_ROW
        waveforms = self._tape.crops(first, samples) * inside
        return Batch(waveforms, rows, [clip.letters for clip in clips])


class Trainer:
    """The recogniser and its training state."""

    def __init__(self, settings: Settings, device: torch.device) -> None:
        torch.manual_seed(settings.seed)
        self.settings, self.device, self.step = settings, device, 0
        self.recogniser = CTCRecogniser().to(device)
        self._descent = Optimizer(self.recogniser.parameters(), betas=(0.9, 0.98), decay=0.01)
        self.average = Average(self.recogniser)

    def train(self, batch: Batch, progress: float) -> float:
        """Run one step. Returns its loss for each letter."""
        self._descent.rate.copy_(torch.tensor(self.settings.rate.at(progress, self.step)))
        scores = self._score(batch.waveforms)
        counts = torch.tensor([len(one) for one in batch.letters])
        letters = torch.tensor([letter for one in batch.letters for letter in one])
        loss = F.ctc_loss(
            scores.float().log_softmax(-1).transpose(0, 1),
            letters.to(self.device),
            batch.rows,
            counts.to(self.device),
            blank=BLANK,
            zero_infinity=True,
        )
        self._descent.step(loss)
        self.average.update()
        self.step += 1
        return loss.item()

    @torch.no_grad()
    def count_errors(self, batch: Batch) -> float:
        """Return the share of letters that are wrong."""
        self.recogniser.eval()
        classes = self._score(batch.waveforms).argmax(-1).cpu()
        self.recogniser.train()
        wrong = total = 0
        counts = batch.rows.tolist()
        for row, count, letters in zip(classes.tolist(), counts, batch.letters, strict=True):
            wrong += edit_distance(decode_letters(letters), decode_best_path(row[:count]))
            total += len(letters)
        return wrong / total

    def _score(self, waveforms: Tensor) -> Tensor:
        with torch.autocast(self.device.type, torch.bfloat16, enabled=self.device.type == "cuda"):
            scores: Tensor = self.recogniser(waveforms)[1]
        return scores


def hold_out(chunks: Iterable[Chunk], kept: Clips, seen: list[int]) -> Iterator[Chunk]:
    """Yield the chunks that are learnt from; of every `HELD_OUT_EVERY` the first goes to `kept`."""
    for chunk in chunks:
        seen[0] += 1
        if seen[0] % HELD_OUT_EVERY == 1:
            kept.add([chunk])
        else:
            yield chunk


def measure(trainer: Trainer, kept: Clips) -> dict[str, float]:
    """Return the share of wrong letters in a minute of clips; nothing without clips."""
    return {} if kept.is_empty else {"letters": round(trainer.count_errors(kept.draw(60.0)), 4)}


def run(trainer: Trainer, corpus: CorpusFolder, output: Path, clock: RunClock) -> None:
    """Train until the time is over; prints every five seconds, saves every minute."""
    output.mkdir(parents=True, exist_ok=True)
    settings = trainer.settings
    clips = Clips(settings.hours, trainer.device, settings.seed)
    kept, seen = Clips(1.0, trainer.device, settings.seed), [0]
    clips.add(hold_out(corpus.wait(120), kept, seen))
    meter, printed, saved = MeanMeter(), clock.elapsed, clock.elapsed
    while clock.running:
        if not clips.is_empty:
            meter.add({"loss": trainer.train(clips.draw(settings.batch_seconds), clock.progress)})
        if clock.elapsed - printed > 5 or clips.is_empty:
            printed = clock.elapsed
            done = f"{printed:.0f} s, step {trainer.step}, {clips.hours:.2f} h"
            print(done, meter.flush() | measure(trainer, kept), flush=True)
            clips.add(hold_out(corpus.new_chunks(), kept, seen))
        if clock.elapsed - saved > 60:
            saved = clock.elapsed
            save_pieces(trainer.average.tensors, output, CTC_RECOGNISER)
    save_pieces(trainer.average.tensors, output, CTC_RECOGNISER)


def parse_arguments(description: str | None = __doc__) -> tuple[argparse.Namespace, Settings]:
    """Parse the command line. Returns the arguments and the settings."""
    defaults = Settings()
    args = run_parser(description, defaults, defaults.rate.peak).parse_args()
    rate = replace(defaults.rate, peak=args.peak)
    return args, replace(defaults, rate=rate, **settings_from_args(args, defaults))


def train(args: argparse.Namespace, settings: Settings, corpus: CorpusFolder) -> Trainer:
    """Train as the command line says."""
    torch.backends.cuda.matmul.allow_tf32 = torch.backends.cudnn.allow_tf32 = True
    trainer = Trainer(settings, torch.device(args.device))
    clock = RunClock(args.seconds, args.pause)
    run(trainer, corpus, args.output, clock)
    print(f"done: {trainer.step} steps in {clock.elapsed:.0f} s")
    return trainer
