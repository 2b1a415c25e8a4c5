"""Train the thinker and its encoders on shards, by the clock.

`python -m cookbook.ming_mini.thinker.train --model DIR --shards DIR --output DIR --seconds 900`

Shards may still be appearing; the run takes the first as soon as there is one of text. It goes on
where `--output` holds the state of an earlier run.
"""

import argparse
import json
import time
from collections import Counter
from dataclasses import dataclass, field
from pathlib import Path

import torch
from torch import Tensor

from cookbook.ming_mini.descent import Optimizer
from cookbook.ming_mini.prefetch import Prefetch
from cookbook.ming_mini.schedule import Rate
from cookbook.ming_mini.thinker.balance import rebalance, spread, summed
from cookbook.ming_mini.thinker.forward import Load
from cookbook.ming_mini.thinker.joined import Joined, join
from cookbook.ming_mini.thinker.learn import learn, practise, study
from cookbook.ming_mini.thinker.library import Library, Placeholders
from cookbook.ming_mini.thinker.model import Thinking, new_thinking, read_packed
from cookbook.ming_mini.thinker.picture_tasks import SIGN_SIZES
from cookbook.ming_mini.thinker.regions import PLAIN, compiled
from cookbook.ming_mini.thinker.reports import NORM, SKIPPED, Report, Reports
from cookbook.ming_mini.thinker.shards import ShardFolder, ShardReader
from cookbook.ming_mini.thinker.tasks import KINDS, TASKS, Kind
from cookbook.ming_mini.weights import load_pieces, load_state, save_pieces, save_state
from sglang_omni.models.checkpoint_files import INDEX_FILE
from sglang_omni.models.ming.prompt.tokenizer import ThinkerTokenizer

PIECES = "thinking"
WAIT_SECONDS = 600.0
PEAK_RATE, WARM_UP = 2e-3, 300
SPELLING = 0.3
"""How much the loss of signs that the encoder sees alone counts."""
PAUSED = 3
"""The exit status of a call that ended before the run."""


@dataclass(frozen=True)
class Settings:
    """How a run learns. `tokens` is a step's size; the shares divide it among the kinds, once
    the first part of the run, `text_only`, is over. In every step, from the first, the encoder of
    pictures looks at so many `signs` by itself, for reading takes it longest to learn."""

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
    seed: int = 1
    compile: bool = False


@dataclass(frozen=True)
class Drawn:
    """What one step learns from: batches with the shares of their losses."""

    shares: tuple[float, ...]
    joined: Joined


class Trainer:
    """The model, its optimizer and what it has seen."""

    def __init__(self, folder: Path, settings: Settings, device: torch.device) -> None:
        self.settings, self.device = settings, device
        self.model = new_thinking(folder, settings.seed).to(device)
        self.library = new_library(folder, self.model, device, settings.seed)
        self.step, self.spent = 0, 0.0
        self._regions = compiled() if settings.compile else PLAIN
        self._noise = torch.Generator(device).manual_seed(settings.seed)
        self._descent = new_descent(self.model, settings.decay)

    def draw(self) -> Drawn:
        """The batches of a step: of all kinds that there are. Another thread may call it."""
        tokens, shares = self.settings.tokens, self._shares()
        batches = [self.library.draw(kind, int(share * tokens)) for kind, share in shares]
        joined = join(batches, tokens, pin=self.device.type == "cuda")
        return Drawn(tuple(share for _, share in shares), joined)

    def train(self, drawn: Drawn | None = None) -> Report:
        """One step, of batches drawn before or now; returns its losses. Waits for nothing."""
        settings = self.settings
        loss, losses, loads = self._learn(drawn or self.draw())
        self._descent.rate.fill_(settings.rate.at(self.progress, self.step))
        norm = self._descent.step(loss)
        skipped = (~norm.isfinite()).float()
        counts, layers = summed([loads]), self.model.sparse_layers()
        if self.progress < settings.balanced_until:
            rebalance(layers, counts, settings.bias_speed * (1 - skipped))
        self.step += 1
        busiest = spread(counts, layers[0].routing).amax()
        return losses | {NORM: norm, "busiest": busiest, SKIPPED: skipped}

    @property
    def progress(self) -> float:
        """Share of the run that is over."""
        return self.spent / self.settings.seconds

    def _learn(self, drawn: Drawn) -> tuple[Tensor, Report, list[Load]]:
        """The loss of a step, what it is made of, and the routers' loads."""
        step, weight = drawn.joined.to(self.device), self.settings.sense
        with torch.autocast(self.device.type, torch.bfloat16, self.device.type == "cuda"):
            found, loads = learn(self.model, step, self.library, self._noise, self._regions)
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
        """The loss of signs that the encoder sees alone, 0 while there are none."""
        sizes = [size for size in SIGN_SIZES if size in self.library.pictures]
        if not (sizes and self.settings.signs):
            return torch.zeros((), device=self.device), {}
        loss, letters = practise(
            self.model, self.library, sizes[self.step % len(sizes)], self.settings.signs,
            self._noise, self._regions.varied,
        )  # fmt: skip
        return loss, {"signs": loss.detach(), "letters": letters}

    def _shares(self) -> list[tuple[Kind, float]]:
        """Kinds of this step with their shares: text alone at first, then all that there are."""
        there = [(k, s) for k, s in self.settings.shares if self.library.added[k]]
        if self.progress < self.settings.text_only:
            there = [pair for pair in there if pair[0] == "text"] or there
        total = sum(share for _, share in there)
        return [(kind, share / total) for kind, share in there]

    def save(self, folder: Path) -> None:
        """Write the state to go on from, and the weights in pieces."""
        state = {
            "model": self.model.state_dict(),
            "optimizer": self._descent.state_dict(),
            "step": self.step,
            "spent": self.spent,
        }
        save_state(state, folder, PIECES)
        save_pieces(self.model.state_dict(), folder, PIECES)

    def begin_with(self, folder: Path) -> None:
        """Take the weights that `save` wrote, or those of a packed checkpoint with new heads; in
        either case with a new optimizer. Raises `FileNotFoundError` and `CheckpointError`."""
        if (folder / INDEX_FILE).exists():
            read_packed(self.model, folder)
        else:
            self.model.load_state_dict(load_pieces(folder, PIECES))

    def resume(self, folder: Path) -> None:
        """Go on from a state that `save` wrote, if there is one."""
        state = load_state(folder, PIECES, self.device)
        if state is not None:
            self.model.load_state_dict(state["model"])
            self._descent.load_state_dict(state["optimizer"])
            self.step, self.spent = state["step"], state["spent"]


def new_library(folder: Path, model: Thinking, device: torch.device, seed: int) -> Library:
    """An empty library for the tokens of a model's folder."""
    audio = ThinkerTokenizer(folder).token_id("<audioPatch>")
    stride = model.audio.config.audio.ds_stride
    return Library(Placeholders(model.image_token, audio, stride), device, seed)


def new_descent(model: Thinking, decay: float) -> Optimizer:
    """The optimizer of a model: matrices decay, but neither norms nor tables."""
    learnt = [(n, p) for n, p in model.named_parameters() if p.requires_grad]
    matrices = [p for n, p in learnt if p.ndim > 1 and "embed" not in n]
    others = [p for n, p in learnt if p.ndim == 1 or "embed" in n]
    return Optimizer(matrices, betas=(0.9, 0.98), decay=decay, steady=others)


@torch.no_grad()
def accuracy(model: Thinking, library: Library, tokens: int = 32_768) -> dict[str, float]:
    """For each task the share of the library's answers that greedy decoding prints exactly."""
    right, seen = Counter[str](), Counter[str]()
    device = model.thinker.lm_head.weight.device
    for kind in KINDS:
        for batch in library.all(kind, tokens):
            with torch.autocast(device.type, torch.bfloat16, device.type == "cuda"):
                answered = study(model, batch, library).right.tolist()
            for task, correct in zip(batch.tasks.tolist(), answered, strict=True):
                seen[TASKS[task]] += 1
                right[TASKS[task]] += correct
    return {task: round(right[task] / seen[task], 3) for task in TASKS if seen[task]}


def run(trainer: Trainer, reader: ShardReader, held_out: Library, args: argparse.Namespace) -> None:
    """Train until the time is over, or to a pause, reporting now and then."""
    reports, batches = Reports(), Prefetch(trainer.draw)
    start, before = time.monotonic(), trainer.spent
    due = {"report": 0.0, "test": args.test_seconds, "shards": 0.0}
    while trainer.progress < 1 and trainer.spent < before + args.pause:
        trainer.spent = before + time.monotonic() - start
        if trainer.spent >= due["shards"]:
            batches.rest()
            _take_in(trainer, reader, most=4)
            due["shards"] = trainer.spent + 1.0
        reports.add(trainer.train(batches.draw()))
        if trainer.spent >= due["report"]:
            _say(trainer, **reports.flush())
            due["report"] = trainer.spent + args.report_seconds
        if trainer.spent >= due["test"]:
            _say(trainer, **accuracy(trainer.model, held_out, trainer.settings.tokens))
            trainer.save(args.output)
            due["test"] = trainer.spent + args.test_seconds


def _take_in(trainer: Trainer, reader: ShardReader, most: int) -> None:
    for kind, shard in reader.ready(most):
        trainer.library.add(kind, shard)


def _wait(trainer: Trainer, reader: ShardReader) -> None:
    """Take in all shards that are there; wait for the first, and where a run goes on for those of
    every kind, which it has long had. Raises `TimeoutError`."""
    end = time.monotonic() + WAIT_SECONDS
    enough = all if trainer.step else any
    kinds = [kind for kind, _ in trainer.settings.shares]
    while reader.reading or not enough(trainer.library.added[kind] for kind in kinds):
        if time.monotonic() > end:
            raise TimeoutError("no shard appeared")
        _take_in(trainer, reader, most=50)
        time.sleep(0.1)


def _say(trainer: Trainer, **values: float) -> None:
    rounded = {name: round(value, 4) for name, value in values.items()}
    head = {"step": trainer.step, "seconds": round(trainer.spent)}
    print(json.dumps(head | rounded), flush=True)


def settings_of(args: argparse.Namespace) -> Settings:
    """The settings that the command line asks for."""
    shares = tuple(zip(KINDS, map(float, args.shares.split(",")), strict=True))
    kept = tuple((kind, share) for kind, share in shares if share > 0)
    rate = Rate(args.rate, args.rate / 100, args.warm_up)
    return Settings(
        args.seconds, args.tokens, rate, args.text_only, kept, signs=args.signs,
        bias_speed=args.bias_speed, seed=args.seed, compile=args.compile,
    )  # fmt: skip


def main() -> int:
    """Train; 0 where the run is over, `PAUSED` where another call must go on."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--model", type=Path, required=True, help="folder of the layout")
    parser.add_argument("--shards", type=Path, required=True)
    parser.add_argument("--held-out", type=Path, required=True)
    parser.add_argument("--output", type=Path, required=True)
    parser.add_argument(
        "--start", type=Path, help="weights of another run or a packed checkpoint, to begin with"
    )
    parser.add_argument("--seconds", type=float, required=True)
    parser.add_argument("--pause", type=float, default=float("inf"), help="seconds of this call")
    parser.add_argument("--tokens", type=int, default=Settings.tokens)
    parser.add_argument("--rate", type=float, default=PEAK_RATE)
    parser.add_argument("--warm-up", type=int, default=WARM_UP)
    parser.add_argument("--text-only", type=float, default=Settings.text_only)
    parser.add_argument("--shares", default="0.3,0.33,0.37", help="of text, pictures and speech")
    parser.add_argument("--signs", type=int, default=Settings.signs, help="seen alone in a step")
    parser.add_argument("--bias-speed", type=float, default=Settings.bias_speed)
    parser.add_argument("--report-seconds", type=float, default=10)
    parser.add_argument("--test-seconds", type=float, default=60)
    parser.add_argument("--device", default="cuda")
    parser.add_argument("--seed", type=int, default=Settings.seed)
    parser.add_argument(
        "--compile", action=argparse.BooleanOptionalAction, help="default: on a GPU"
    )
    args = parser.parse_args()
    torch.set_float32_matmul_precision("high")
    # A choice less: only the backends that every release of PyTorch has taken for masks and groups.
    torch.backends.cuda.enable_cudnn_sdp(False)
    device = torch.device(args.device)
    args.compile = device.type == "cuda" if args.compile is None else args.compile
    trainer = Trainer(args.model, settings_of(args), device)
    if args.start:
        trainer.begin_with(args.start)
    trainer.resume(args.output)
    held_out = new_library(args.model, trainer.model, device, args.seed)
    for kind, shard in ShardFolder(args.held_out).new():
        held_out.add(kind, shard)
    reader = ShardReader(args.shards)
    _wait(trainer, reader)
    run(trainer, reader, held_out, args)
    _say(trainer, **accuracy(trainer.model, held_out, args.tokens))
    trainer.save(args.output)
    return 0 if trainer.progress >= 1 else PAUSED


if __name__ == "__main__":
    raise SystemExit(main())
