"""The vision encoder as a `ModalityEncoder`: rank 0, which drives the other ranks."""

from collections.abc import Sequence

import numpy as np
from torch import Tensor

from sglang_omni.engines.encoder.contract import EncoderSettings
from sglang_omni.engines.encoder.tp_workers import TPWorkers
from sglang_omni.engines.encoder.vision_rank import load_rank
from sglang_omni.engines.runtime.ports import find_rendezvous_port
from sglang_omni.engines.runtime.shared_array import Layout
from sglang_omni.models.encoder import Cost
from sglang_omni.models.registry import family_of


class VisionModality:
    """The vision encoder of a checkpoint on one or several ranks. Costs are in patches."""

    def __init__(self, settings: EncoderSettings) -> None:
        """Start the other ranks and load the encoder.

        Raises:
            CheckpointError: The checkpoint is incomplete.
            ConfigError: The encoder cannot be split over the ranks.
        """
        family_of(settings.checkpoint).check_vision_ranks(settings.checkpoint, settings.tp_size)
        self.budget = float(settings.max_patches)
        port = find_rendezvous_port()
        self._tp_workers = TPWorkers(settings, port)
        self._model = load_rank(settings, 0, port)
        ranks = f", {settings.tp_size} ranks" if settings.tp_size > 1 else ""
        self.description = self._model.description + ranks

    def estimate_cost(self, layout: Layout) -> Cost:
        """See `ModalityEncoder`."""
        return self._model.estimate_cost(layout.shape, layout.dtype)

    def validate(self, array: np.ndarray) -> None:
        """See `ModalityEncoder`."""
        self._model.validate(array)

    def encode(self, arrays: Sequence[np.ndarray]) -> list[Tensor]:
        """Return features [tokens, hidden] of each image or video, encoded by all ranks."""
        self._tp_workers.send(arrays)
        return self._model.encode(arrays)

    def warm_up(self) -> None:
        """See `ModalityEncoder`."""
        self.encode([self._model.sample_array()])

    def close(self) -> None:
        """End the other ranks."""
        self._tp_workers.close()
