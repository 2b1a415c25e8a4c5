"""Train the thinker and its encoders on shards, by the clock.

`python -m cookbook.ming_mini.thinker.train --model DIR --shards DIR --output DIR --seconds 900`

Shards may still be appearing; the run takes the first as soon as there is one of text. It goes on
where `--output` holds the state of an earlier run.
"""

import argparse
import json
import time
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path

import torch

from cookbook.ming_mini.schedule import Rate
from cookbook.ming_mini.thinker.balance import rebalance, spread, summed
from cookbook.ming_mini.thinker.learn import Learnt, study
from cookbook.ming_mini.thinker.library import Library, Placeholders
from cookbook.ming_mini.thinker.model import Thinking, new_thinking
from cookbook.ming_mini.thinker.shards import ShardFolder, ShardReader
from cookbook.ming_mini.thinker.tasks import KINDS, TASKS, Kind
from cookbook.ming_mini.weights import load_state, save_pieces, save_state
from sglang_omni.models.ming.tokenizer import ThinkerTokenizer

PIECES = "thinking"
WAIT_SECONDS = 600.0
PEAK_RATE, WARM_UP = 2e-3, 300
MOST_SKIPPED = 20
Report = dict[str, torch.Tensor]
"""Numbers of a step, left on the device: to read them would wait for it."""


@dataclass(frozen=True)
class Settings:
    """How a run learns. `tokens` is a step's size; the shares divide it among the kinds, once
    the first part of the run, `text_only`, is over."""

    seconds: float
    tokens: int = 32_768
    rate: Rate = field(default_factory=lambda: Rate(PEAK_RATE, PEAK_RATE / 100, WARM_UP))
    text_only: float = 0.08
    shares: tuple[tuple[Kind, float], ...] = (("text", 0.35), ("picture", 0.25), ("speech", 0.4))
    sense: float = 0.5
    uneven: float = 1e-3
    bias_speed: float = 1e-3
    balanced_until: float = 0.85
    decay: float = 0.05
    clip: float = 1.0
    seed: int = 1


class Trainer:
    """The model, its optimizer and what it has seen."""

    def __init__(self, folder: Path, settings: Settings, device: torch.device) -> None:
        self.settings, self.device = settings, device
        self.model = new_thinking(folder, settings.seed).to(device)
        self.library = new_library(folder, self.model, device, settings.seed)
        self.step, self.spent, self._skipped = 0, 0.0, 0
        self._noise = torch.Generator(device).manual_seed(settings.seed)
        self._optimizer = new_optimizer(self.model, settings.decay, device)

    def train(self) -> Report:
        """One step of all kinds that there are; returns its losses."""
        settings, learnt = self.settings, []
        report: Report = {}
        for kind, share in self._shares():
            one = self._learn(kind, share)
            learnt.append(one)
            report |= {kind: one.loss.detach(), f"{kind} sense": one.sense.detach()}
        norm = torch.nn.utils.clip_grad_norm_(self.model.parameters(), settings.clip)
        self.step += 1
        if not norm.isfinite():
            return self._skip(report)
        self._skipped = 0
        self._move()
        counts, layers = summed([one.loads for one in learnt]), self.model.sparse_layers()
        if self.progress < settings.balanced_until:
            rebalance(layers, counts, settings.bias_speed)
        return report | {"norm": norm, "busiest": spread(counts, layers[0].routing).amax()}

    def _skip(self, report: Report) -> Report:
        """Leave the weights as they are: one batch must not spoil them. Names what was infinite.

        Raises `FloatingPointError` if that happens again and again.
        """
        self._skipped += 1
        if self._skipped > MOST_SKIPPED:
            raise FloatingPointError(f"no finite gradient for {self._skipped} steps")
        self._optimizer.zero_grad(set_to_none=True)
        infinite = {name: value for name, value in report.items() if not value.isfinite()}
        one = next(iter(report.values())).new_ones(())
        return {"skipped": one, **{f"skipped, {name}": one for name in infinite}}

    @property
    def progress(self) -> float:
        """Share of the run that is over."""
        return self.spent / self.settings.seconds

    def _learn(self, kind: Kind, share: float) -> Learnt:
        batch = self.library.draw(kind, int(share * self.settings.tokens))
        with torch.autocast(self.device.type, torch.bfloat16, self.device.type == "cuda"):
            learnt = study(self.model, batch, self.library, self._noise)
            uneven = torch.stack([load.uneven for load in learnt.loads]).mean()
            loss = learnt.loss + self.settings.sense * learnt.sense + self.settings.uneven * uneven
        (share * loss).backward()
        return learnt

    def _shares(self) -> list[tuple[Kind, float]]:
        """Kinds of this step with their shares: text alone at first, then all that there are."""
        there = [(k, s) for k, s in self.settings.shares if self.library.added[k]]
        if self.progress < self.settings.text_only:
            there = [pair for pair in there if pair[0] == "text"] or there
        total = sum(share for _, share in there)
        return [(kind, share / total) for kind, share in there]

    def _move(self) -> None:
        for group in self._optimizer.param_groups:
            group["lr"] = self.settings.rate.at(self.progress, self.step)
        self._optimizer.step()
        self._optimizer.zero_grad(set_to_none=True)

    def save(self, folder: Path) -> None:
        """Write the state to go on from, and the weights in pieces."""
        state = {
            "model": self.model.state_dict(),
            "optimizer": self._optimizer.state_dict(),
            "step": self.step,
            "spent": self.spent,
        }
        save_state(state, folder, PIECES)
        save_pieces(self.model.state_dict(), folder, PIECES)

    def resume(self, folder: Path) -> None:
        """Go on from a state that `save` wrote, if there is one."""
        state = load_state(folder, PIECES, self.device)
        if state is not None:
            self.model.load_state_dict(state["model"])
            self._optimizer.load_state_dict(state["optimizer"])
            self.step, self.spent = state["step"], state["spent"]


def new_library(folder: Path, model: Thinking, device: torch.device, seed: int) -> Library:
    """An empty library for the tokens of a model's folder."""
    audio = ThinkerTokenizer(folder).token_id("<audioPatch>")
    stride = model.audio.config.audio.ds_stride
    return Library(Placeholders(model.image_token, audio, stride), device, seed)


def new_optimizer(model: Thinking, decay: float, device: torch.device) -> torch.optim.AdamW:
    """AdamW that lets matrices decay, but neither norms nor tables."""
    learnt = [(n, p) for n, p in model.named_parameters() if p.requires_grad]
    matrices = [p for n, p in learnt if p.ndim > 1 and "embed" not in n]
    others = [p for n, p in learnt if p.ndim == 1 or "embed" in n]
    groups = [{"params": matrices, "weight_decay": decay}, {"params": others, "weight_decay": 0.0}]
    return torch.optim.AdamW(groups, betas=(0.9, 0.98), fused=device.type == "cuda")


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
    recent: list[Report] = []
    start, before = time.monotonic(), trainer.spent
    due = {"report": 0.0, "test": args.test_seconds, "shards": 0.0}
    while trainer.progress < 1 and trainer.spent < before + args.pause:
        trainer.spent = before + time.monotonic() - start
        if trainer.spent >= due["shards"]:
            _take_in(trainer, reader, most=4)
            due["shards"] = trainer.spent + 1.0
        recent.append(trainer.train())
        if trainer.spent >= due["report"]:
            _say(trainer, steps=len(recent), **means(recent))
            recent = []
            due["report"] = trainer.spent + args.report_seconds
        if trainer.spent >= due["test"]:
            _say(trainer, **accuracy(trainer.model, held_out, trainer.settings.tokens))
            trainer.save(args.output)
            due["test"] = trainer.spent + args.test_seconds


def means(reports: Sequence[Report]) -> dict[str, float]:
    """Mean of every number over the steps that have it; how many were skipped."""
    names = dict.fromkeys(name for report in reports for name in report)
    found = {name: [one[name] for one in reports if name in one] for name in names}
    return {
        name: float(len(values))
        if name.startswith("skipped")
        else float(torch.stack(values).mean())
        for name, values in found.items()
    }


def _take_in(trainer: Trainer, reader: ShardReader, most: int) -> None:
    for kind, shard in reader.ready(most):
        trainer.library.add(kind, shard)


def _wait(trainer: Trainer, reader: ShardReader) -> None:
    """Take in all shards that are there; wait for the first. Raises `TimeoutError`."""
    end = time.monotonic() + WAIT_SECONDS
    while reader.reading or not any(trainer.library.added.values()):
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
        args.seconds, args.tokens, rate, args.text_only, kept, bias_speed=args.bias_speed,
        seed=args.seed,
    )  # fmt: skip


def main() -> None:
    """Train."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--model", type=Path, required=True, help="folder of the layout")
    parser.add_argument("--shards", type=Path, required=True)
    parser.add_argument("--held-out", type=Path, required=True)
    parser.add_argument("--output", type=Path, required=True)
    parser.add_argument("--seconds", type=float, required=True)
    parser.add_argument("--pause", type=float, default=float("inf"), help="seconds of this call")
    parser.add_argument("--tokens", type=int, default=Settings.tokens)
    parser.add_argument("--rate", type=float, default=PEAK_RATE)
    parser.add_argument("--warm-up", type=int, default=WARM_UP)
    parser.add_argument("--text-only", type=float, default=Settings.text_only)
    parser.add_argument("--shares", default="0.35,0.25,0.4", help="of text, pictures and speech")
    parser.add_argument("--bias-speed", type=float, default=Settings.bias_speed)
    parser.add_argument("--report-seconds", type=float, default=10)
    parser.add_argument("--test-seconds", type=float, default=60)
    parser.add_argument("--device", default="cuda")
    parser.add_argument("--seed", type=int, default=Settings.seed)
    args = parser.parse_args()
    torch.set_float32_matmul_precision("high")
    # A choice less: only the backends that every release of PyTorch has taken for masks and groups.
    torch.backends.cuda.enable_cudnn_sdp(False)
    device = torch.device(args.device)
    trainer = Trainer(args.model, settings_of(args), device)
    trainer.resume(args.output)
    held_out = new_library(args.model, trainer.model, device, args.seed)
    for kind, shard in ShardFolder(args.held_out).new():
        held_out.add(kind, shard)
    reader = ShardReader(args.shards)
    _wait(trainer, reader)
    run(trainer, reader, held_out, args)
    _say(trainer, **accuracy(trainer.model, held_out, args.tokens))
    trainer.save(args.output)


if __name__ == "__main__":
    main()
