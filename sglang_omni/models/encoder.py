"""What an encoder engine needs of a model: one modality's arrays in, feature rows out."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Protocol

import numpy as np
from torch import Tensor


@dataclass(frozen=True)
class Cost:
    """The cost of a request.

    Attributes:
        amount: The cost in the unit of the encoder's budget: patches of images, seconds of audio.
        counts: What the request adds to the engine's counters.
        steps: The number of equal, independent time steps along the first axis of its array. A
            request may be split between them.
    """

    amount: float
    counts: Mapping[str, float]
    steps: int = 1


class ModalityModel(Protocol):
    """The encoder of one modality on one device, or one rank of it."""

    @property
    def description(self) -> str:
        """Return what runs where, for the log."""

    def estimate_cost(self, shape: tuple[int, ...], dtype: str) -> Cost:
        """Check an array's shape and dtype and return its cost.

        Raises:
            InvalidRequest: Such an array cannot be encoded.
        """

    def validate(self, array: np.ndarray) -> None:
        """Check the content of an array.

        Raises:
            InvalidRequest: The content cannot be encoded.
        """

    def encode(self, arrays: Sequence[np.ndarray]) -> list[Tensor]:
        """Return features [rows, hidden] of each array, by one forward pass, on the device.

        Vision arrays are uint8 [frames, height, width, 3], audio arrays float32 [samples].
        """

    def sample_array(self) -> np.ndarray:
        """Return a small input to warm up with."""
