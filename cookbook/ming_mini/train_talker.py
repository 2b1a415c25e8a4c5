"""Train the talker on a corpus that may still grow, for so many seconds.

`python -m cookbook.ming_mini.train_talker --corpus DIR --vae DIR --output DIR --seconds 360`

The VAE's weights come from `--vae`. `--pause` ends a call before the run is over; the next one goes
on from the state in `--output`.
"""

import argparse
import math
from collections.abc import Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import asdict, dataclass
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import torch
from torch import Tensor

from cookbook.ming_mini.batches import Batch, Batcher, prompt_frame
from cookbook.ming_mini.corpus import Chunk, CorpusFolder
from cookbook.ming_mini.flow import (
    GUIDED_LAYERS,
    NO_HISTORY,
    UNHEARD,
    Arrays,
    Losses,
    Sketch,
    flow_loss,
    forget,
    gather,
    stop_loss,
    teacher_forced,
    to_device,
)
from cookbook.ming_mini.layout import configurations, write_layout
from cookbook.ming_mini.schedule import Clock, Meter, Rate
from cookbook.ming_mini.talker_start import new_talker
from cookbook.ming_mini.train_vae import VAE
from cookbook.ming_mini.utterances import Library
from cookbook.ming_mini.weights import Average, load_pieces, load_state, save_pieces, save_state
from sglang_omni.models.ming.config import TalkerConfig, VAEConfig
from sglang_omni.models.ming.talker_prompt import PromptTokenizer
from sglang_omni.models.ming.vae import AudioVAE

TALKER = "talker"
PATCHES_AN_HOUR = 3600 / 0.32 * 2.2
"""Of the store: utterances, the padding of short ones, and their prompts."""


RATE = Rate(1.5e-3, 5e-5, 300)


@dataclass(frozen=True)
class Settings:
    """How the talker is trained; a step takes so many `patches` in all its utterances."""

    patches: int = 2048
    rate: Rate = RATE
    stop: float = 0.2
    guide: float = 0.5
    sketch: float = 0.5
    compile: bool = True
    seed: int = 0
    hours: float = 40.0


class Trainer:
    """The talker and what trains it."""

    def __init__(self, config: TalkerConfig, settings: Settings, device: torch.device) -> None:
        self.settings, self.device = settings, device
        self.talker = new_talker(config, settings.seed).to(device)
        self.sketch = Sketch(config.llm.hidden_size, config.latent_dim).to(device)
        self._weights = [*self.talker.parameters(), *self.sketch.parameters()]
        self.velocity = self.talker.cfm.model
        if settings.compile:
            self.velocity = torch.compile(self.velocity, dynamic=False)
        self.random = torch.Generator(device).manual_seed(settings.seed)
        self.step = 0
        self._optimizer = torch.optim.AdamW(
            self._weights,
            betas=(0.9, 0.98),
            weight_decay=0.01,
            fused=device.type == "cuda",
        )
        self.average = Average(self.talker)

    def resume(self, folder: Path) -> float:
        """Go on with the run whose state is in `folder`; returns the seconds it took so far."""
        state = load_state(folder, TALKER, self.device)
        if state is None:
            return 0.0
        for name, part in self._parts().items():
            part.load_state_dict(state[name])
        self.step = state["step"]
        self.random.manual_seed(self.settings.seed + self.step)
        return float(state["spent"])

    def save(self, folder: Path, spent: float) -> None:
        """Write the averaged weights, and the state of a run that took `spent` seconds so far."""
        parts = {name: part.state_dict() for name, part in self._parts().items()}
        save_state({**parts, "step": self.step, "spent": spent}, folder, TALKER)
        save_pieces(self.average.tensors, folder, TALKER)

    def _parts(self) -> dict[str, Any]:
        """All that has a state."""
        return {
            "talker": self.talker,
            "sketch": self.sketch,
            "average": self.average,
            "optimizer": self._optimizer,
        }

    def train(self, library: Library, batch: Batch, progress: float) -> Losses:
        """One step; returns its losses."""
        arrays = to_device(batch, self.device)
        losses = self.losses(library, arrays)
        settings = self.settings
        guide = settings.guide * max(0.1, 1 - progress)
        total = losses.flow + settings.stop * losses.stop + guide * losses.misplaced
        total = total + settings.sketch * losses.sketch
        for group in self._optimizer.param_groups:
            group["lr"] = self.settings.rate.at(progress, self.step)
        self._optimizer.zero_grad(set_to_none=True)
        total.backward()
        torch.nn.utils.clip_grad_norm_(self._weights, 1.0)
        self._optimizer.step()
        self.average.update()
        self.step += 1
        return losses

    def losses(self, library: Library, arrays: Arrays) -> Losses:
        """The losses of one batch."""
        heard, primed, past, aim = gather(library.store, arrays, self.random)
        with torch.autocast(self.device.type, torch.bfloat16, enabled=self.device.type == "cuda"):
            heard = forget(heard, UNHEARD, self.random)
            run = teacher_forced(self.talker, arrays, heard, primed, past)
            stop = stop_loss(self.talker, run.hidden, arrays)
            chosen = self._choose(arrays.exists)
            parts = (part.flatten(0, 1)[chosen] for part in (run.hidden, run.history, aim))
            hidden, history, patches = parts
            history = forget(history, NO_HISTORY, self.random)
            flow = flow_loss(self.velocity, hidden, history, patches, self.random)
            sketch = self.sketch(hidden, patches)
        return Losses(flow, stop, run.misplaced / len(GUIDED_LAYERS), sketch)

    def _choose(self, exists: Tensor) -> Tensor:
        """Places of exactly `patches` existing patches, some twice: shapes never change."""
        places = exists.flatten().nonzero().flatten()
        order = torch.randperm(len(places), generator=self.random, device=self.device)
        repeats = -(-self.settings.patches // len(places))
        return places[order].repeat(repeats)[: self.settings.patches]


class Prefetch:
    """Draws the next batch in a thread while the device works."""

    def __init__(self, batcher: Batcher) -> None:
        self._batcher, self._pool = batcher, ThreadPoolExecutor(1)
        self._next: Future[Batch] = self._pool.submit(batcher.draw)

    def draw(self) -> Batch:
        """The batch drawn meanwhile."""
        batch = self._next.result()
        self._next = self._pool.submit(self._batcher.draw)
        return batch

    def rest(self) -> None:
        """Wait until nothing is being drawn, so that the tables may change."""
        self._next.exception()


def trained_vae(config: VAEConfig, folder: Path, device: torch.device) -> AudioVAE:
    """The VAE of a training run, frozen."""
    vae = AudioVAE(config, encoder_layers=None)
    vae.load_state_dict(load_pieces(folder, VAE))
    return vae.to(device).eval().requires_grad_(False)


def mini_tokenizer() -> PromptTokenizer:
    """The tokenizer as the product reads it."""
    with TemporaryDirectory() as name:
        write_layout(Path(name))
        return PromptTokenizer(Path(name))


def add(library: Library, tokenizer: PromptTokenizer, chunks: Iterator[Chunk]) -> None:
    """Encode chunks one by one."""
    for chunk in chunks:
        library.add([chunk], [tokenizer.encode(text) for text in chunk.texts])


def run(
    trainer: Trainer, library: Library, corpus: CorpusFolder, output: Path, clock: Clock
) -> None:
    """Train until the clock has run out; prints every five seconds, saves every minute."""
    tokenizer = mini_tokenizer()
    add(library, tokenizer, corpus.wait(120))
    settings = trainer.settings
    batches = Prefetch(
        Batcher(library.tables, prompt_frame(tokenizer), settings.patches, settings.seed)
    )
    meter, printed, saved = Meter(), clock.elapsed, clock.elapsed
    while clock.running:
        losses = trainer.train(library, batches.draw(), clock.progress)
        if trainer.step % 10 == 0:
            meter.add({name: value.item() for name, value in vars(losses).items()})
        if clock.elapsed - printed > 5:
            printed = clock.elapsed
            hours = library.tables.seconds / 3600
            print(f"{printed:.0f} s, step {trainer.step}, {hours:.2f} h", meter.flush(), flush=True)
            batches.rest()
            add(library, tokenizer, corpus.new_chunks())
        if clock.elapsed - saved > 60:
            saved = clock.elapsed
            trainer.save(output, clock.spent)
    trainer.save(output, clock.spent)


def parse() -> tuple[argparse.Namespace, Settings]:
    """The command line; every plain number of `Settings` is an option."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--corpus", type=Path, required=True)
    parser.add_argument("--vae", type=Path, required=True)
    parser.add_argument("--output", type=Path, required=True)
    parser.add_argument("--seconds", type=float, default=360)
    parser.add_argument("--pause", type=float, default=math.inf, help="seconds of this call")
    parser.add_argument("--peak", type=float, default=Settings().rate.peak)
    parser.add_argument("--device", default="cuda" if torch.cuda.is_available() else "cpu")
    numbers = {k: v for k, v in asdict(Settings()).items() if isinstance(v, int | float)}
    for name, value in numbers.items():
        option = argparse.BooleanOptionalAction if isinstance(value, bool) else None
        kind = {"action": option} if option else {"type": type(value)}
        parser.add_argument("--" + name, default=value, **kind)
    args = parser.parse_args()
    chosen = {name: getattr(args, name) for name in numbers}
    return args, Settings(rate=Rate(args.peak, args.peak / 30, 300), **chosen)


def main() -> None:
    """Train, or train on."""
    args, settings = parse()
    torch.backends.cuda.matmul.allow_tf32 = torch.backends.cudnn.allow_tf32 = True
    device = torch.device(args.device)
    config, vae_config = configurations()
    vae = trained_vae(vae_config, args.vae, device)
    library = Library(vae, int(settings.hours * PATCHES_AN_HOUR), device)
    trainer = Trainer(config, settings, device)
    clock = Clock(args.seconds, args.pause, trainer.resume(args.output))
    run(trainer, library, CorpusFolder(args.corpus), args.output, clock)
    print(f"done: {trainer.step} steps in {clock.elapsed:.0f} s")


if __name__ == "__main__":
    main()
