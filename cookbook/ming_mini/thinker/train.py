"""Train the thinker and its encoders on shards, for a given time.

    python -m cookbook.ming_mini.thinker.train --model DIR --shards DIR --output DIR --seconds 900

Shards may appear during the run, which starts as soon as there is one of text. It continues if
`--output` has the state of an earlier run.
"""

import argparse
import json
import time
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path

import torch
from torch import Tensor

from cookbook.ming_mini.compilation import EAGER, compiled_regions
from cookbook.ming_mini.optimizer import Optimizer
from cookbook.ming_mini.options import positive_seconds
from cookbook.ming_mini.prefetch import Prefetch
from cookbook.ming_mini.schedule import Rate
from cookbook.ming_mini.thinker.balance import max_relative_load, sum_counts, update_biases
from cookbook.ming_mini.thinker.curriculum import MINI, Curriculum
from cookbook.ming_mini.thinker.forward import RouterLoad
from cookbook.ming_mini.thinker.library import Library, Placeholders
from cookbook.ming_mini.thinker.model import TrainableThinker, new_thinker, read_packed
from cookbook.ming_mini.thinker.picture_tasks import SIGN_SIZES
from cookbook.ming_mini.thinker.reports import NORM, SKIPPED, Report, Reports
from cookbook.ming_mini.thinker.shards import ShardFolder, ShardReader
from cookbook.ming_mini.thinker.step_batch import StepBatch, join_batches
from cookbook.ming_mini.thinker.tasks import Kind
from cookbook.ming_mini.thinker.training_losses import (
    compute_losses,
    evaluate_batch,
    practise_vision,
)
from cookbook.ming_mini.weights import Average, load_pieces, load_state, save_pieces, save_state
from sglang_omni.models.checkpoint_files import INDEX_FILE
from sglang_omni.models.ming.prompt.tokenizer import ThinkerTokenizer

PIECES = "thinking"
WAIT_SECONDS = 600.0
SAVE_SECONDS = 60.0
"""How often the state is saved: what a machine that ends early leaves behind."""
PEAK_RATE, WARM_UP = 2e-3, 300
SPELLING = 0.3
"""The weight of the loss of signs for the encoder alone."""
PAUSED = 3
"""The exit status of a call that ended before the run."""


@dataclass(frozen=True)
class Settings:
    """The settings of a run.

    `tokens` is the size of a step. `shares` divide it among the kinds after the first part of the
    run, `text_only`. In every step, from the first, the vision encoder also sees `signs` pictures
    by itself, because reading takes it longest to learn. With `average`, the decay
    of a moving average of the weights, that average is what `save` writes and `accuracy` measures.
    """

    seconds: float
    tokens: int = 32_768
    rate: Rate = field(default_factory=lambda: Rate(PEAK_RATE, PEAK_RATE / 100, WARM_UP))
    text_only: float = 0.08
    shares: tuple[tuple[Kind, float], ...] = (("text", 0.3), ("picture", 0.33), ("speech", 0.37))
    sense: float = 0.5
    signs: int = 0
    uneven: float = 1e-3
    bias_speed: float = 1e-3
    balanced_until: float = 0.85
    decay: float = 0.05
    average: float = 0.0
    seed: int = 1
    compile: bool = False


@dataclass(frozen=True)
class DrawnStep:
    """The data of one step: batches with the shares of their losses."""

    shares: tuple[float, ...]
    joined: StepBatch


class Trainer:
    """The model, its optimizer and its training state."""

    def __init__(
        self,
        folder: Path,
        settings: Settings,
        device: torch.device,
        curriculum: Curriculum = MINI,
    ) -> None:
        self.settings, self.device, self.curriculum = settings, device, curriculum
        self.model = new_thinker(folder, settings.seed, len(curriculum.marks)).to(device)
        self.library = new_library(folder, self.model, device, settings.seed, curriculum)
        self._average = Average(self.model, settings.average) if settings.average else None
        self.step, self.spent = 0, 0.0
        self._regions = compiled_regions() if settings.compile else EAGER
        self._noise = torch.Generator(device).manual_seed(settings.seed)
        self._descent = new_optimizer(self.model, settings.decay)

    def draw(self) -> DrawnStep:
        """Draw the batches of a step, of all available kinds. May be called from another thread."""
        tokens, shares = self.settings.tokens, self._shares()
        batches = [self.library.draw(kind, int(share * tokens)) for kind, share in shares]
        joined = join_batches(batches, tokens, pin=self.device.type == "cuda")
        return DrawnStep(tuple(share for _, share in shares), joined)

    def train(self, drawn: DrawnStep | None = None) -> Report:
        """Run one step, of given or new batches.

        Returns its losses, without waiting for the device.
        """
        settings = self.settings
        loss, losses, loads = self._learn(drawn or self.draw())
        self._descent.rate.fill_(settings.rate.at(self.progress, self.step))
        norm = self._descent.step(loss)
        skipped = (~norm.isfinite()).float()
        counts, layers = sum_counts([loads]), self.model.sparse_layers()
        if self.progress < settings.balanced_until:
            update_biases(layers, counts, settings.bias_speed * (1 - skipped))
        if self._average:
            self._average.update()
        self.step += 1
        busiest = max_relative_load(counts, layers[0].routing).amax()
        return losses | {NORM: norm, "busiest": busiest, SKIPPED: skipped}

    @property
    def progress(self) -> float:
        """Return the share of the run that is over."""
        return self.spent / self.settings.seconds

    def _learn(self, drawn: DrawnStep) -> tuple[Tensor, Report, list[RouterLoad]]:
        """Return the loss of a step, its parts, and the routers' loads."""
        step, weight = drawn.joined.to(self.device), self.settings.sense
        with torch.autocast(self.device.type, torch.bfloat16, self.device.type == "cuda"):
            found, loads = compute_losses(
                self.model, step, self.library, self._noise, self._regions
            )
            both = torch.stack([one.answers + weight * one.sense for one in found])
            uneven = torch.stack([load.uneven for load in loads]).mean()
            pairs = zip(drawn.shares, both.unbind(), strict=True)
            loss = sum((share * one for share, one in pairs), self.settings.uneven * uneven)
            spelling, report = self._practise()
            loss = loss + SPELLING * spelling
        for batch, one in zip(step.batches, found, strict=True):
            report |= {batch.kind: one.answers.detach(), f"{batch.kind} sense": one.sense.detach()}
        return loss, report, loads

    def _practise(self) -> tuple[Tensor, Report]:
        """Return the loss of signs for the encoder alone; 0 while there are none."""
        sizes = [size for size in SIGN_SIZES if size in self.library.pictures]
        if not (sizes and self.settings.signs):
            return torch.zeros((), device=self.device), {}
        loss, letters = practise_vision(
            self.model, self.library, sizes[self.step % len(sizes)], self.settings.signs,
            self._noise, self._regions.varied,
        )  # fmt: skip
        return loss, {"signs": loss.detach(), "letters": letters}

    def _shares(self) -> list[tuple[Kind, float]]:
        """Return the kinds of this step with their shares.

        Text is alone at first; later all available kinds are in.
        """
        there = [(k, s) for k, s in self.settings.shares if self.library.added[k]]
        if self.progress < self.settings.text_only:
            there = [pair for pair in there if pair[0] == "text"] or there
        total = sum(share for _, share in there)
        return [(kind, share / total) for kind, share in there]

    def save(self, folder: Path) -> None:
        """Write the state to continue from, and the weights in pieces."""
        state = {
            "model": self.model.state_dict(),
            "optimizer": self._descent.state_dict(),
            "step": self.step,
            "spent": self.spent,
        }
        if self._average:
            state["average"] = self._average.state_dict()
        save_state(state, folder, PIECES)
        save_pieces(self.weights(), folder, PIECES)

    def weights(self) -> dict[str, Tensor]:
        """Return the result so far: the average of the weights, or else the last ones."""
        return self._average.tensors if self._average else self.model.state_dict()

    @torch.no_grad()
    def accuracy(self, held_out: Library) -> dict[str, float]:
        """Return the accuracy of every task with the weights that `save` would write."""
        own = {name: tensor.clone() for name, tensor in self.model.state_dict().items()}
        self.model.load_state_dict(self.weights())
        try:
            return accuracy(self.model, held_out, self.settings.tokens, self.curriculum)
        finally:
            self.model.load_state_dict(own)

    def load_weights(self, folder: Path) -> None:
        """Load the weights that `save` wrote, or those of a packed checkpoint with new heads.

        The optimizer is new in either case.

        Raises:
            FileNotFoundError: There are no weights.
            CheckpointError: The checkpoint lacks a tensor.
        """
        if (folder / INDEX_FILE).exists():
            read_packed(self.model, folder)
        else:
            self.model.load_state_dict(load_pieces(folder, PIECES))
        self.restart_average()

    def restart_average(self) -> None:
        """Begin the average of the weights anew, with those that the model has now."""
        if self._average:
            self._average = Average(self.model, self.settings.average)

    def resume(self, folder: Path) -> None:
        """Continue from a state that `save` wrote, if there is one."""
        state = load_state(folder, PIECES, self.device)
        if state is not None:
            self.model.load_state_dict(state["model"])
            self._descent.load_state_dict(state["optimizer"])
            self.step, self.spent = state["step"], state["spent"]
            if self._average:
                self._average.load_state_dict(state["average"])


def new_library(
    folder: Path,
    model: TrainableThinker,
    device: torch.device,
    seed: int,
    curriculum: Curriculum = MINI,
) -> Library:
    """Return an empty library for the tokens of a model's folder."""
    audio = ThinkerTokenizer(folder).token_id("<audioPatch>")
    stride = model.audio.config.audio.ds_stride
    tokens = Placeholders(model.image_token, audio, stride, model.frame_token)
    return Library(tokens, device, seed, curriculum)


def new_optimizer(model: TrainableThinker, decay: float) -> Optimizer:
    """Return the optimizer of a model: matrices decay, norms and tables do not."""
    learnt = [(n, p) for n, p in model.named_parameters() if p.requires_grad]
    matrices = [p for n, p in learnt if p.ndim > 1 and "embed" not in n]
    others = [p for n, p in learnt if p.ndim == 1 or "embed" in n]
    return Optimizer(matrices, betas=(0.9, 0.98), decay=decay, steady=others)


@torch.no_grad()
def accuracy(
    model: TrainableThinker, library: Library, tokens: int = 32_768, curriculum: Curriculum = MINI
) -> dict[str, float]:
    """Return for each task the share of answers that greedy decoding gives exactly."""
    right, seen = Counter[str](), Counter[str]()
    device = model.thinker.lm_head.weight.device
    for kind in curriculum.kinds:
        for batch in library.all(kind, tokens):
            with torch.autocast(device.type, torch.bfloat16, device.type == "cuda"):
                answered = evaluate_batch(model, batch, library).right.tolist()
            for task, correct in zip(batch.tasks.tolist(), answered, strict=True):
                seen[curriculum.tasks[task]] += 1
                right[curriculum.tasks[task]] += correct
    return {task: round(right[task] / seen[task], 3) for task in curriculum.tasks if seen[task]}


def run(trainer: Trainer, reader: ShardReader, held_out: Library, args: argparse.Namespace) -> None:
    """Train until the time is over or paused, with reports now and then."""
    reports, batches = Reports(), Prefetch(trainer.draw)
    start, before = time.monotonic(), trainer.spent
    due = {"report": 0.0, "test": args.test_seconds, "save": SAVE_SECONDS, "shards": 0.0}
    while trainer.progress < 1 and trainer.spent < before + args.pause:
        trainer.spent = before + time.monotonic() - start
        if trainer.spent >= due["shards"]:
            batches.rest()
            _add_shards(trainer, reader, most=4)
            due["shards"] = trainer.spent + 1.0
        reports.add(trainer.train(batches.draw()))
        if trainer.spent >= due["report"]:
            _print_report(trainer, **reports.flush())
            due["report"] = trainer.spent + args.report_seconds
        if trainer.spent >= due["test"]:
            _print_report(trainer, **trainer.accuracy(held_out))
            due["test"] = trainer.spent + args.test_seconds
        if trainer.spent >= due["save"]:
            trainer.save(args.output)
            due["save"] = trainer.spent + SAVE_SECONDS


def _add_shards(trainer: Trainer, reader: ShardReader, most: int) -> None:
    for kind, shard in reader.ready(most):
        trainer.library.add(kind, shard)


def _wait_for_shards(trainer: Trainer, reader: ShardReader) -> None:
    """Add all available shards, and wait for the first.

    A run that continues waits for every kind that it had. Raises `TimeoutError`.
    """
    end = time.monotonic() + WAIT_SECONDS
    enough = all if trainer.step else any
    kinds = [kind for kind, _ in trainer.settings.shares]
    while reader.reading or not enough(trainer.library.added[kind] for kind in kinds):
        if time.monotonic() > end:
            raise TimeoutError("no shard appeared")
        _add_shards(trainer, reader, most=50)
        time.sleep(0.1)


def _print_report(trainer: Trainer, **values: float) -> None:
    rounded = {name: round(value, 4) for name, value in values.items()}
    head = {"step": trainer.step, "seconds": round(trainer.spent)}
    print(json.dumps(head | rounded), flush=True)


def settings_of(args: argparse.Namespace, curriculum: Curriculum = MINI) -> Settings:
    """Build the settings from the command line."""
    shares = tuple(zip(curriculum.kinds, map(float, args.shares.split(",")), strict=True))
    kept = tuple((kind, share) for kind, share in shares if share > 0)
    rate = Rate(args.rate, args.rate / 100, args.warm_up)
    return Settings(
        args.seconds, args.tokens, rate, args.text_only, kept, signs=args.signs,
        bias_speed=args.bias_speed, seed=args.seed, compile=args.compile, average=args.average,
    )  # fmt: skip


def new_parser(about: str | None) -> argparse.ArgumentParser:
    """Return the parser of the command line; `about` describes the program."""
    parser = argparse.ArgumentParser(description=about)
    parser.add_argument("--model", type=Path, required=True, help="folder of the layout")
    parser.add_argument("--shards", type=Path, required=True)
    parser.add_argument("--held-out", type=Path, required=True)
    parser.add_argument("--output", type=Path, required=True)
    parser.add_argument(
        "--start", type=Path, help="weights of another run or a packed checkpoint, to begin with"
    )
    parser.add_argument("--seconds", type=positive_seconds, required=True)
    parser.add_argument("--pause", type=float, default=float("inf"), help="seconds of this call")
    parser.add_argument("--tokens", type=int, default=Settings.tokens)
    parser.add_argument("--rate", type=float, default=PEAK_RATE)
    parser.add_argument("--warm-up", type=int, default=WARM_UP)
    parser.add_argument("--text-only", type=float, default=Settings.text_only)
    parser.add_argument("--shares", default="0.3,0.33,0.37", help="of the kinds, in their order")
    parser.add_argument("--average", type=float, default=Settings.average, help="decay; 0: none")
    parser.add_argument("--signs", type=int, default=Settings.signs, help="seen alone in a step")
    parser.add_argument("--bias-speed", type=float, default=Settings.bias_speed)
    parser.add_argument("--report-seconds", type=float, default=10)
    parser.add_argument("--test-seconds", type=float, default=60)
    parser.add_argument("--device", default="cuda")
    parser.add_argument("--seed", type=int, default=Settings.seed)
    parser.add_argument(
        "--compile", action=argparse.BooleanOptionalAction, help="default: on a GPU"
    )
    return parser


def main() -> int:
    """Train Ming-mini. Return 0 if the run is over, `PAUSED` if another call must continue it."""
    return train(new_parser(__doc__).parse_args())


def train(
    args: argparse.Namespace,
    curriculum: Curriculum = MINI,
    load: Callable[[Trainer, Path], None] = Trainer.load_weights,
) -> int:
    """Train as the command line asks.

    `load` loads the weights of `--start`. Returns 0 if the run is over, `PAUSED` if another
    call must continue it.
    """
    torch.set_float32_matmul_precision("high")
    # A choice less: only the backends that every release of PyTorch has taken for masks and groups.
    torch.backends.cuda.enable_cudnn_sdp(False)
    device = torch.device(args.device)
    args.compile = device.type == "cuda" if args.compile is None else args.compile
    trainer = Trainer(args.model, settings_of(args, curriculum), device, curriculum)
    if args.start:
        load(trainer, args.start)
    trainer.resume(args.output)
    held_out = new_library(args.model, trainer.model, device, args.seed, curriculum)
    for kind, shard in ShardFolder(args.held_out).new():
        held_out.add(kind, shard)
    reader = ShardReader(args.shards)
    _wait_for_shards(trainer, reader)
    run(trainer, reader, held_out, args)
    _print_report(trainer, **trainer.accuracy(held_out))
    trainer.save(args.output)
    return 0 if trainer.progress >= 1 else PAUSED


if __name__ == "__main__":
    raise SystemExit(main())
