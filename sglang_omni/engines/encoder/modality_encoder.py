"""The interface of an encoder for one modality: vision or audio."""

from collections.abc import Sequence
from typing import Protocol

import numpy as np
from torch import Tensor

from sglang_omni.engines.runtime.shared_array import Layout
from sglang_omni.models.encoder import Cost


class ModalityEncoder(Protocol):
    """Encodes one modality.

    `budget` is the maximum cost of a forward pass. Only a single time step may exceed it.
    """

    @property
    def budget(self) -> float:
        """Return the maximum cost of a forward pass."""

    def estimate_cost(self, layout: Layout) -> Cost:
        """Check a request's layout and return its cost.

        Raises:
            InvalidRequest: An array of this layout cannot be encoded.
        """

    def validate(self, array: np.ndarray) -> None:
        """Check the content of an array.

        Raises:
            InvalidRequest: The content cannot be encoded.
        """

    def encode(self, arrays: Sequence[np.ndarray]) -> list[Tensor]:
        """Return features [rows, hidden] of each array, by one forward pass, on the device."""

    def warm_up(self) -> None:
        """Encode a small input, so that every kernel has run."""

    def close(self) -> None:
        """Release what the encoder holds besides memory."""
