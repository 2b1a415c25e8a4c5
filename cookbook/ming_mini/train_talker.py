"""Train the talker for a given time, on a corpus that may still grow.

    python -m cookbook.ming_mini.train_talker --corpus DIR --vae DIR --output DIR --seconds 360

The VAE's weights come from `--vae`, the folder of its run or the file of a packed one. The talker
is new, or that of a packed file (`--start`). `--pause` ends a call before the run is over; the next
call continues from the state in `--output`. `torchrun` trains copies on several GPUs
(`replicas.py`).
"""

import argparse
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import torch
from torch import Tensor

from cookbook.ming_mini.augmentation import FREE, Changes, Copies, locked
from cookbook.ming_mini.batches import Batch, Batcher, prompt_frame
from cookbook.ming_mini.compilation import choose_runner
from cookbook.ming_mini.corpus import Chunk, CorpusFolder
from cookbook.ming_mini.cuda_graphs import StepReplay
from cookbook.ming_mini.flow import (
    GUIDED_LAYERS,
    NO_AUDIO,
    NO_HISTORY,
    DeviceBatch,
    PatchPredictor,
    TalkerLosses,
    drop_patches,
    flow_loss,
    gather,
    host_tensors,
    stop_loss,
    teacher_forced,
)
from cookbook.ming_mini.layers import start_from
from cookbook.ming_mini.layout import configurations, write_layout
from cookbook.ming_mini.optimizer import Optimizer
from cookbook.ming_mini.options import run_parser, settings_from_args
from cookbook.ming_mini.prefetch import Prefetch
from cookbook.ming_mini.replicas import ALONE, Replicas, join_replicas
from cookbook.ming_mini.schedule import MeanMeter, Rate, RunClock
from cookbook.ming_mini.talker_init import hidden_matrices, new_talker
from cookbook.ming_mini.train_vae import VAE
from cookbook.ming_mini.utterances import Library, PatchStore
from cookbook.ming_mini.weights import (
    PIECE_BYTES,
    Average,
    load_state,
    load_weights,
    save_pieces,
    save_state,
)
from sglang_omni.models.ming.config import TalkerConfig, VAEConfig
from sglang_omni.models.ming.speech.prompt import PromptTokenizer
from sglang_omni.models.ming.speech.vae import AudioVAE

TALKER = "talker"
LATENTS_AN_HOUR = 3600 / 0.08 * 2.2
"""Of the store: utterances, the padding of short ones, and their prompts."""
HELD_OUT_EVERY, HELD_OUT_HOURS = 40, 1.0
"""Of so many chunks one is not learnt from, as long as there is room for it."""
SHIFTED = 0.4
"""Of voice prompts of a corpus with locked pulses, the share that begins anywhere in a latent."""
COPY_SECONDS = 0.8
"""For changed copies, of the five seconds between two times when clips are added."""
RATE = Rate(1.5e-3, 5e-5, 300)


@dataclass(frozen=True)
class Settings:
    """The settings of the talker's training; a step has `patches` patches in all its utterances.

    With `compile`, the flow model is compiled for a GPU, with `compile_backbone` the backbone, too.
    With `muon`, matrices of layers are stepped by Muon, all else by AdamW. Every chunk is learnt
    from in `copies` that differ, and `hours` is what there is room for with all of them. With
    `locked`, they leave the pulses of voices in their places within latents. The averaged weights
    are written in pieces of at most `split_bytes`.
    """

    patches: int = 2048
    rate: Rate = RATE
    stop: float = 0.2
    guide: float = 0.5
    sketch: float = 0.5
    compile: bool = True
    compile_backbone: bool = True
    record: bool = True
    muon: bool = False
    seed: int = 0
    hours: float = 40.0
    copies: int = 1
    locked: bool = False
    split_bytes: int = PIECE_BYTES


class Trainer:
    """The talker and its training state."""

    def __init__(
        self,
        config: TalkerConfig,
        settings: Settings,
        store: PatchStore,
        device: torch.device,
        packed: Path | None = None,
        replicas: Replicas = ALONE,
    ) -> None:
        """Build the talker, one of several copies if there are `replicas`.

        With `packed`, the file or the folder of a trained talker, training starts from it. That
        may have fewer layers.
        """
        self.settings, self.device = settings, device
        self.talker = new_talker(config, settings.seed).to(device)
        if packed is not None:
            start_from(self.talker, load_weights(packed, TALKER))
        numbers = config.patch_size * config.latent_dim
        self.sketch = PatchPredictor(config.llm.hidden_size, numbers).to(device)
        run = choose_runner(settings.compile, device)
        self.velocity = partial(run, self.talker.cfm.model)
        # Shapes vary with the utterances: one compilation serves them all.
        self._run_backbone = choose_runner(settings.compile_backbone, device, dynamic=True)
        self.replicas = replicas
        self.random = torch.Generator(device).manual_seed(replicas.seed(settings.seed))
        self.step = 0
        self._weights = (*self.talker.parameters(), *self.sketch.parameters())
        replicas.start_equal(self._weights)
        self._store, self._descent = store, self._optimizer()
        self._replay = StepReplay(self._improve, self.random, settings.record)
        self.average = Average(self.talker)

    def _optimizer(self) -> Optimizer:
        """Return the optimizer of all weights."""
        hidden = hidden_matrices(self.talker) if self.settings.muon else []
        others = [one for one in self._weights if all(one is not matrix for matrix in hidden)]
        return Optimizer(others, betas=(0.9, 0.98), decay=0.01, hidden=hidden)

    def resume(self, folder: Path) -> float:
        """Continue the run whose state is in `folder`. Returns the seconds that it took so far."""
        state = load_state(folder, TALKER, self.device)
        if state is None:
            return 0.0
        for name, part in self._parts().items():
            part.load_state_dict(state[name])
        self.step = state["step"]
        self.random.manual_seed(self.replicas.seed(self.settings.seed) + self.step)
        return float(state["spent"])

    def save(self, folder: Path, spent: float) -> None:
        """Write the averaged weights, and the state of a run that took `spent` seconds so far.

        Of several copies only the first one writes.
        """
        if not self.replicas.is_first:
            return
        parts = {name: part.state_dict() for name, part in self._parts().items()}
        save_state({**parts, "step": self.step, "spent": spent}, folder, TALKER)
        save_pieces(self.average.tensors, folder, TALKER, self.settings.split_bytes)

    def _parts(self) -> dict[str, Any]:
        """Return everything that has a state."""
        return {
            "talker": self.talker,
            "sketch": self.sketch,
            "average": self.average,
            "optimizer": self._descent,
        }

    def meet(self, goes_on: bool) -> bool:
        """Average the copies' weights if it is time. Returns whether the training goes on."""
        return self.replicas.meet(self.step, goes_on, self._weights)

    def train(self, batch: Batch, progress: float) -> TalkerLosses:
        """Run one step. Returns its losses, which the next step overwrites."""
        settings = self.settings
        guide = settings.guide * max(0.1, 1 - progress)
        controls = torch.tensor((settings.rate.at(progress, self.step), guide))
        losses = self._replay(batch.target.shape, (controls, *host_tensors(batch)))
        self.average.update()
        self.step += 1
        return losses

    def _improve(self, shape: tuple[int, ...], inputs: tuple[Tensor, ...]) -> TalkerLosses:
        """Run one step on the device: the controls are the rate and the weight of guidance."""
        controls, *tensors = inputs
        self._descent.rate.copy_(controls[0])
        losses = self.losses(DeviceBatch(*tensors), self._store, self.random)
        settings = self.settings
        total = losses.flow + settings.stop * losses.stop + controls[1] * losses.misplaced
        self._descent.step(total + settings.sketch * losses.sketch)
        return TalkerLosses(*(loss.detach() for loss in vars(losses).values()))

    def losses(
        self, arrays: DeviceBatch, store: PatchStore, random: torch.Generator
    ) -> TalkerLosses:
        """Return the losses of one batch of a store."""
        heard, primed, past, aim = gather(store, arrays, random)
        with torch.autocast(self.device.type, torch.bfloat16, enabled=self.device.type == "cuda"):
            heard = drop_patches(heard, NO_AUDIO, random)
            run = teacher_forced(self.talker, arrays, heard, primed, past, run=self._run_backbone)
            stop = stop_loss(self.talker, run.hidden, arrays)
            parts = (part.flatten(0, 1)[arrays.chosen] for part in (run.hidden, run.history, aim))
            hidden, history, patches = parts
            history = drop_patches(history, NO_HISTORY, random)
            flow = flow_loss(self.velocity, hidden, history, patches, random)
            sketch = self.sketch(hidden, patches)
        return TalkerLosses(flow, stop, run.misplaced / len(GUIDED_LAYERS), sketch)


class HeldOut:
    """Clips that are not learnt from: what is learnt by heart does not help with them."""

    def __init__(self, library: Library, tokenizer: PromptTokenizer, seed: int) -> None:
        self._library, self._tokenizer, self._seed = library, tokenizer, seed
        self._count = 0

    def take(self, chunks: Iterable[Chunk]) -> Iterator[Chunk]:
        """Yield the chunks that are learnt from; of every `HELD_OUT_EVERY` the second is kept."""
        for chunk in chunks:
            self._count += 1
            if self._count % HELD_OUT_EVERY == 2:
                add_chunks(self._library, self._tokenizer, iter([chunk]))
            else:
                yield chunk

    def report(self, trainer: "Trainer") -> dict[str, float]:
        """Return the flow loss of one batch, always drawn the same way; nothing without clips."""
        if not self._library.tables.count:
            return {}
        frame = prompt_frame(self._tokenizer)
        batcher = Batcher(self._library.tables, frame, trainer.settings.patches, self._seed)
        arrays = DeviceBatch(*(one.to(trainer.device) for one in host_tensors(batcher.draw())))
        random = torch.Generator(trainer.device).manual_seed(self._seed)
        # With gradients, although there is no step: without, all would be compiled again.
        flow = trainer.losses(arrays, self._library.store, random).flow.item()
        return {"held out": round(flow, 4)}


def trained_vae(config: VAEConfig, place: Path, device: torch.device) -> AudioVAE:
    """Load the VAE from the folder of a training run, or from a packed file; frozen."""
    vae = AudioVAE(config, encoder_layers=None)
    vae.load_state_dict(load_weights(place, VAE))
    return vae.to(device).eval().requires_grad_(False)


def mini_tokenizer() -> PromptTokenizer:
    """Return the tokenizer as the product reads it."""
    with TemporaryDirectory() as name:
        write_layout(Path(name))
        return PromptTokenizer(Path(name))


def add_chunks(library: Library, tokenizer: PromptTokenizer, chunks: Iterator[Chunk]) -> None:
    """Encode chunks one by one."""
    for chunk in chunks:
        library.add(
            [chunk],
            [tokenizer.encode(text) for text in chunk.texts],
            [tokenizer.encode(text) for text in chunk.instructions],
        )


def run(
    trainer: Trainer,
    library: Library,
    held: HeldOut,
    corpus: CorpusFolder,
    output: Path,
    clock: RunClock,
    tokenizer: PromptTokenizer,
    changes: Changes = FREE,
) -> None:
    """Train until the time is over; prints every five seconds, saves every minute."""
    settings, replicas = trainer.settings, trainer.replicas
    seed = replicas.seed(settings.seed)
    copies = Copies(settings.copies, changes, seed, trainer.device)
    add_chunks(library, tokenizer, copies.originals(held.take(corpus.wait(120))))
    batches = Prefetch(
        Batcher(library.tables, prompt_frame(tokenizer), settings.patches, seed).draw
    )
    meter, printed, saved = MeanMeter(), clock.elapsed, clock.elapsed
    while trainer.meet(clock.running):
        losses = trainer.train(batches.draw(), clock.progress)
        if trainer.step % 10 == 0:
            meter.add({name: value.item() for name, value in vars(losses).items()})
        if clock.elapsed - printed > 5:
            printed = clock.elapsed
            hours = library.tables.seconds / 3600
            done = f"{printed:.0f} s, step {trainer.step}, {hours:.2f} h"
            if replicas.is_first:
                print(done, meter.flush() | held.report(trainer), flush=True)
            batches.rest()
            add_chunks(library, tokenizer, copies.originals(held.take(corpus.new_chunks())))
            add_chunks(library, tokenizer, copies.changed(COPY_SECONDS))
        if clock.elapsed - saved > 60:
            saved = clock.elapsed
            trainer.save(output, clock.spent)
    trainer.save(output, clock.spent)


def parse_arguments(
    description: str | None = __doc__, defaults: Settings = Settings()
) -> tuple[argparse.Namespace, Settings]:
    """Parse the command line. Returns the arguments and the settings."""
    parser = run_parser(description, defaults, defaults.rate.peak)
    parser.add_argument("--vae", type=Path, required=True)
    parser.add_argument("--start", type=Path, help="file or folder of a trained talker")
    args = parser.parse_args()
    rate = Rate(args.peak, args.peak / 30, 300)
    return args, replace(defaults, rate=rate, **settings_from_args(args, defaults))


def train(
    args: argparse.Namespace,
    settings: Settings,
    configs: tuple[TalkerConfig, VAEConfig],
    open_corpus: Callable[[Path, Replicas], CorpusFolder],
    tokenizer: PromptTokenizer,
) -> Trainer:
    """Train, or continue to train, as the command line says."""
    torch.backends.cuda.matmul.allow_tf32 = torch.backends.cudnn.allow_tf32 = True
    replicas, device = join_replicas(torch.device(args.device))
    config, vae_config = configs
    vae = trained_vae(vae_config, args.vae, device)
    patch = config.patch_size
    patches_an_hour = LATENTS_AN_HOUR / patch
    shifted = SHIFTED if settings.locked else 0.0
    library = Library(vae, int(settings.hours * patches_an_hour), device, shifted, patch)
    trainer = Trainer(config, settings, library.store, device, args.start, replicas)
    clock = RunClock(args.seconds, args.pause, trainer.resume(args.output))
    corpus = open_corpus(args.corpus, replicas)
    kept = Library(vae, int(HELD_OUT_HOURS * patches_an_hour), device, patch=patch)
    held = HeldOut(kept, tokenizer, settings.seed)
    changes = locked(vae_config.samples_per_latent) if settings.locked else FREE
    run(trainer, library, held, corpus, args.output, clock, tokenizer, changes)
    print(f"done: {trainer.step} steps in {clock.elapsed:.0f} s")
    return trainer


def main() -> None:
    """Train Ming-mini's talker."""
    args, settings = parse_arguments()
    train(args, settings, configurations(), CorpusFolder, mini_tokenizer())


if __name__ == "__main__":
    main()
