"""All batches of a step, of every kind, as rows of one matrix.

So a step is one forward and one backward pass.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import torch
from torch import Tensor

from cookbook.ming_mini.thinker.forward import Rows
from cookbook.ming_mini.thinker.library import Batch


@dataclass(frozen=True)
class StepBatch:
    """Batches in T rows, at least as many as their tokens: `ids` [T] and `rows`.

    Rows `before` [N] must predict `answers` [N], those of the first batch first, with `weights` [N]
    whose sum is 1 for each batch. The features that batch i takes from its media go to rows
    `places[i]`.
    """

    batches: tuple[Batch, ...]
    ids: Tensor
    rows: Rows
    before: Tensor
    answers: Tensor
    weights: Tensor
    places: tuple[Tensor, ...]
    sources: tuple[Tensor, ...]

    def to(self, device: torch.device) -> "StepBatch":
        """Copy to a device; copies from pinned memory are asynchronous."""

        def move(tensor: Tensor) -> Tensor:
            return tensor.to(device, non_blocking=True)

        rows = self.rows
        there = Rows(move(rows.positions), move(rows.routes), move(rows.real), rows.shapes)
        return StepBatch(
            self.batches, move(self.ids), there, move(self.before), move(self.answers),
            move(self.weights), tuple(map(move, self.places)), tuple(map(move, self.sources)),
        )  # fmt: skip


def join_batches(batches: Sequence[Batch], least: int = 0, pin: bool = False) -> StepBatch:
    """Join batches in at least `least` rows.

    If all steps have the same number of rows, one compilation serves all. With `pin` the memory is
    pinned.
    """
    shapes = tuple((len(one.ids), one.ids.shape[1]) for one in batches)
    starts = np.cumsum([0, *(count * length for count, length in shapes)])
    total = max(least, int(starts[-1]))

    def hold(array: np.ndarray) -> Tensor:
        tensor = torch.from_numpy(np.ascontiguousarray(array))
        return tensor.pin_memory() if pin else tensor

    def rows(arrays: list[np.ndarray]) -> Tensor:
        """Join arrays [..., B, L] to [..., T]; the remaining rows are zero."""
        flat = [array.reshape(*array.shape[:-2], -1) for array in arrays]
        rest = np.zeros((*flat[0].shape[:-1], total - int(starts[-1])), flat[0].dtype)
        return hold(np.concatenate([*flat, rest], axis=-1))

    moved = list(zip(batches, starts.tolist(), strict=False))
    return StepBatch(
        tuple(batches),
        rows([one.ids for one in batches]),
        Rows(
            rows([one.positions for one in batches]),
            rows([one.routes for one in batches]),
            rows([one.real for one in batches]),
            shapes,
        ),
        hold(np.concatenate([one.before + start for one, start in moved])),
        hold(np.concatenate([one.answers for one in batches])),
        hold(np.concatenate([one.weights for one in batches])),
        tuple(hold(one.places + start) for one, start in moved),
        tuple(hold(one.sources) for one in batches),
    )
