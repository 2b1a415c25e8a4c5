"""The training of query tokens, connector and transformer, with the thinker frozen.

A run has two stages. First the query tokens and the connector learn to read prompts: the thinker
runs in every step, the transformer in none. Then they stay as they are, their condition rows of
all examples are computed once, and the transformer alone learns to draw, in many small steps.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

import torch
from torch import Tensor

from cookbook.ming_mini.compilation import choose_runner
from cookbook.ming_mini.cuda_graphs import StepReplay
from cookbook.ming_mini.optimizer import Optimizer
from cookbook.ming_mini.schedule import Rate
from cookbook.ming_mini.thinker.reports import NORM, SKIPPED
from cookbook.ming_mini.weights import PIECE_BYTES, Average, load_pieces
from cookbook.ming_mini_2.image.conditions import FrozenThinker, compute_rows
from cookbook.ming_mini_2.image.examples import TASKS, Kind, Task
from cookbook.ming_mini_2.image.flow import flow_loss
from cookbook.ming_mini_2.image.model import (
    TRANSFORMER_PART,
    DrawingModel,
    content_accuracy,
    content_loss,
    new_drawing_model,
)
from cookbook.ming_mini_2.image.scenes import SIZE_SHARES, SIZES
from cookbook.ming_mini_2.image.store import ExampleStore
from cookbook.ming_mini_2.image.training_run import ResumableTrainer
from cookbook.ming_mini_2.image.velocity import VelocityModel

PIECES = "drawing"
RATE = Rate(1e-3, 1e-5, 300)
ROWS_CHUNK = 256
"""Examples whose condition rows are computed at a time."""
Stage = Literal["read", "draw"]


@dataclass(frozen=True)
class DrawingSettings:
    """The settings of a run.

    The share `reading_until` of it is for reading, with `read` examples a step; in the rest a step
    has `draw` examples. A step is of one task: `edits` is the share of drawing steps that edit, and
    `read_edits` of reading steps, since instructions for an edit are harder to read. With
    `compile`, the transformer's blocks are compiled for a GPU, once for each of seven shapes.
    """

    reading_until: float = 0.25
    read: int = 256
    draw: int = 64
    edits: float = 0.4
    read_edits: float = 0.7
    rate: Rate = RATE
    decay: float = 0.02
    average: float = 0.999
    compile: bool = True
    seed: int = 0
    record: bool = True
    split_bytes: int = PIECE_BYTES

    def stage(self, progress: float) -> tuple[Stage, float]:
        """Return the stage at a share of the run, and the share of the stage that is over."""
        if progress < self.reading_until:
            return "read", progress / self.reading_until
        return "draw", (progress - self.reading_until) / (1 - self.reading_until)


class DrawingTrainer(ResumableTrainer):
    """The model and its training state."""

    def __init__(
        self,
        folder: Path,
        settings: DrawingSettings,
        thinker: FrozenThinker,
        stores: Mapping[Kind, ExampleStore],
        device: torch.device,
        start: Path | None = None,
    ) -> None:
        """Build the model of the image folders in `folder`.

        With `start`, a folder of weights, training starts from them.
        """
        super().__init__(PIECES, settings.seed, settings.split_bytes, device)
        self.settings = settings
        self.model = new_drawing_model(folder, thinker.width, settings.seed).to(device)
        if start is not None:
            self.model.load_state_dict(load_pieces(start, PIECES))
        self._thinker, self._stores = thinker, stores
        self._rows: dict[Kind, Tensor] = {}
        run = choose_runner(settings.compile, device)
        self.velocity = VelocityModel(self.model.transformer, run)
        matrices = [one for one in self.model.parameters() if one.ndim > 1]
        others = [one for one in self.model.parameters() if one.ndim == 1]
        self._optimizer = Optimizer(matrices, (0.9, 0.98), settings.decay, others)
        self.average = Average(self.model, settings.average)
        self._replay = StepReplay(self._step, self._noise, settings.record)
        self._stage_steps: dict[Stage, int] = {"read": 0, "draw": 0}

    def train(self, progress: float) -> tuple[Task, dict[str, Tensor]]:
        """Run one step. Returns its task, and its losses, which the next step overwrites."""
        stage, share = self.settings.stage(progress)
        if stage == "draw" and not self._rows:
            self._finish_reading()
        edits, batch = self.settings.edits, self.settings.draw
        if stage == "read":
            edits, batch = self.settings.read_edits, self.settings.read
        kind = self._choose_kind(edits)
        index = torch.randint(len(self._stores[kind]), (batch,), generator=self._draws)
        rate = torch.tensor(self.settings.rate.at(share, self._stage_steps[stage]))
        report = self._replay((stage, kind), (rate, index))
        self.average.update()
        self.step += 1
        self._stage_steps[stage] += 1
        return kind[0], report

    @torch.no_grad()
    def _finish_reading(self) -> None:
        """Take the averaged weights of what reads, and compute the rows of all examples with them.

        What is packed is the average: the transformer learns from the rows that it will see.
        """
        for name, parameter in self.model.named_parameters():
            if not name.startswith(TRANSFORMER_PART):
                parameter.copy_(self.average.tensors[name])
        for kind, store in self._stores.items():
            parts = torch.arange(len(store), device=self.device).split(ROWS_CHUNK)
            self._rows[kind] = torch.cat([self._compute_rows(store, part) for part in parts])

    def _compute_rows(self, store: ExampleStore, index: Tensor) -> Tensor:
        """Return condition rows as they are kept, bfloat16 [N, queries, width]."""
        prompts = store.select_prompts(index).prompts
        with self._autocast():
            return compute_rows(self.model, self._thinker, prompts).bfloat16()

    def _choose_kind(self, edits: float) -> Kind:
        """Draw the task and the size of a step, among those that there are examples of.

        `edits` is the share of steps that edit.
        """
        shares = {"draw": 1 - edits, "edit": edits}
        kinds = {
            (task, size): shares[task] * share
            for task in TASKS
            for size, share in zip(SIZES, SIZE_SHARES, strict=True)
            if (task, size) in self._stores
        }
        (kind,) = self._rng.choices(tuple(kinds), tuple(kinds.values()))
        return kind

    def _step(self, key: tuple[Stage, Kind], inputs: tuple[Tensor, ...]) -> dict[str, Tensor]:
        """Run one step on the device."""
        stage, kind = key
        rate, index = inputs
        self._optimizer.rate.copy_(rate)
        loss, report = (self._read if stage == "read" else self._draw)(kind, index)
        norm = self._optimizer.step(loss)
        # Of a skipped step the norm is not finite, and means of it would say nothing.
        report[NORM], report[SKIPPED] = norm.nan_to_num(0, 0, 0), (~norm.isfinite()).float()
        return {name: value.detach() for name, value in report.items()}

    def _read(self, kind: Kind, index: Tensor) -> tuple[Tensor, dict[str, Tensor]]:
        """Return the loss of reading prompts, and what is reported of it."""
        batch = self._stores[kind].select_prompts(index)
        with self._autocast():
            logits = self.model.reader(compute_rows(self.model, self._thinker, batch.prompts))
        unread = content_loss(logits, batch.labels)
        return unread, {"unread": unread, "read": content_accuracy(logits, batch.labels)}

    def _draw(self, kind: Kind, index: Tensor) -> tuple[Tensor, dict[str, Tensor]]:
        """Return the loss of drawing from condition rows, and what is reported of it."""
        pictures = self._stores[kind].select_pictures(index)
        rows = self._rows[kind].index_select(0, index).float()
        with self._autocast():
            flow = flow_loss(
                self.velocity.predict, pictures.target, rows, pictures.reference, self._noise
            )
        return flow, {"flow": flow}

    def _autocast(self) -> torch.autocast:
        return torch.autocast(self.device.type, torch.bfloat16, self.device.type == "cuda")

    def parts(self) -> dict[str, Any]:
        """See `ResumableTrainer`."""
        return {"model": self.model, "average": self.average, "optimizer": self._optimizer}


def load_drawing_model(
    folder: Path, weights: Path, thinker_width: int, device: torch.device
) -> DrawingModel:
    """Return a trained model. Raises `FileNotFoundError` if there are no weights."""
    model = DrawingModel(folder, thinker_width)
    model.load_state_dict(load_pieces(weights, PIECES))
    return model.to(device).eval().requires_grad_(False)
