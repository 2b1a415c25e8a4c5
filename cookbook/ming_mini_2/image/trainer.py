"""The training of query tokens, connector and transformer, with the thinker frozen."""

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch
from torch import Tensor

from cookbook.ming_mini.cuda_graphs import StepReplay
from cookbook.ming_mini.optimizer import Optimizer
from cookbook.ming_mini.schedule import Rate
from cookbook.ming_mini.weights import PIECE_BYTES, Average, load_pieces
from cookbook.ming_mini_2.image.conditions import FrozenThinker, compute_rows
from cookbook.ming_mini_2.image.examples import TASKS, Kind, Task
from cookbook.ming_mini_2.image.flow import flow_loss
from cookbook.ming_mini_2.image.model import (
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


@dataclass(frozen=True)
class DrawingSettings:
    """The settings of a run.

    A step is of one task. `draw` and `edit` are the examples of a step of each, `edits` the share
    of steps that edit. `reading` weighs the loss of the reader of the condition rows.
    """

    draw: int = 256
    edit: int = 160
    edits: float = 0.4
    rate: Rate = RATE
    reading: float = 0.1
    decay: float = 0.02
    average: float = 0.999
    seed: int = 0
    record: bool = True
    split_bytes: int = PIECE_BYTES

    def batch(self, task: Task) -> int:
        """Return the examples of a step of a task."""
        return self.draw if task == "draw" else self.edit


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
        self.velocity = VelocityModel(self.model.transformer)
        matrices = [one for one in self.model.parameters() if one.ndim > 1]
        others = [one for one in self.model.parameters() if one.ndim == 1]
        self._optimizer = Optimizer(matrices, (0.9, 0.98), settings.decay, others)
        self.average = Average(self.model, settings.average)
        self._replay = StepReplay(self._step, self._noise, settings.record)

    def train(self, progress: float) -> tuple[Task, dict[str, Tensor]]:
        """Run one step. Returns its task, and its losses, which the next step overwrites."""
        kind = self._choose_kind()
        batch, count = self.settings.batch(kind[0]), len(self._stores[kind])
        index = torch.randint(count, (batch,), generator=self._draws)
        rate = torch.tensor(self.settings.rate.at(progress, self.step))
        report = self._replay(kind, (rate, index))
        self.average.update()
        self.step += 1
        return kind[0], report

    def _choose_kind(self) -> Kind:
        """Draw the task and the size of a step, among those that there are examples of."""
        shares = {"draw": 1 - self.settings.edits, "edit": self.settings.edits}
        kinds = {
            (task, size): shares[task] * share
            for task in TASKS
            for size, share in zip(SIZES, SIZE_SHARES, strict=True)
            if (task, size) in self._stores
        }
        (kind,) = self._rng.choices(tuple(kinds), tuple(kinds.values()))
        return kind

    def _step(self, kind: Kind, inputs: tuple[Tensor, ...]) -> dict[str, Tensor]:
        """Run one step on the device."""
        rate, index = inputs
        self._optimizer.rate.copy_(rate)
        batch = self._stores[kind].select(index)
        with torch.autocast(self.device.type, torch.bfloat16, self.device.type == "cuda"):
            rows = compute_rows(self.model, self._thinker, batch.prompts)
            flow = flow_loss(
                self.velocity.predict, batch.target, rows, batch.reference, self._noise
            )
            logits = self.model.reader(rows)
        unread = content_loss(logits, batch.labels)
        norm = self._optimizer.step(flow + self.settings.reading * unread)
        report = {
            "flow": flow,
            "unread": unread,
            "read": content_accuracy(logits, batch.labels),
            "norm": norm,
        }
        return {name: value.detach() for name, value in report.items()}

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
