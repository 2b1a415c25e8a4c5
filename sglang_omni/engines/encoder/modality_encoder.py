"""What the worker needs of a kind of media: pictures and clips are two lanes of one engine."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Protocol

import numpy as np
from torch import Tensor

from sglang_omni.engines.runtime.shared_array import Layout


@dataclass(frozen=True)
class Cost:
    """A request's `cost` in the unit of its lane's budget, and what it adds to the counters.

    `steps` are the equal steps of time along the first axis of its array that do not influence
    each other; a request may be split between them.
    """

    cost: float
    counts: Mapping[str, float]
    steps: int = 1


class ModalityEncoder(Protocol):
    """Encodes one kind of media. `budget` is what a forward pass takes at most, but for
    one step of time that exceeds it."""

    @property
    def budget(self) -> float: ...

    def estimate_cost(self, layout: Layout) -> Cost:
        """Check a request by its layout alone. Raises `InvalidRequest`."""

    def validate(self, array: np.ndarray) -> None:
        """Check what a request holds. Raises `InvalidRequest`."""

    def encode(self, arrays: Sequence[np.ndarray]) -> list[Tensor]:
        """Features [rows, hidden] of each array, in one forward pass, on the lane's device."""

    def warm_up(self) -> None:
        """Encode something, so that every kernel has run."""

    def close(self) -> None:
        """Give up what the lane holds beside memory."""
