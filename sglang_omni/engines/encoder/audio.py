"""The audio encoder of a checkpoint as a `ModalityEncoder`. It never imports sglang."""

from collections.abc import Sequence

import numpy as np
from torch import Tensor

from sglang_omni.engines.encoder.contract import EncoderSettings
from sglang_omni.engines.runtime.shared_array import Layout
from sglang_omni.models.encoder import Cost
from sglang_omni.models.registry import family_of


class AudioModality:
    """The audio encoder on one device. Costs are in seconds."""

    def __init__(self, settings: EncoderSettings) -> None:
        """Load the encoder.

        Raises:
            CheckpointError: The checkpoint is incomplete.
        """
        family = family_of(settings.checkpoint)
        self.budget = settings.max_audio_seconds
        self._model = family.load_audio_encoder(
            settings.checkpoint, settings.device, settings.dtype
        )
        self.description = self._model.description

    def estimate_cost(self, layout: Layout) -> Cost:
        """See `ModalityEncoder`."""
        return self._model.estimate_cost(layout.shape, layout.dtype)

    def validate(self, array: np.ndarray) -> None:
        """See `ModalityEncoder`."""
        self._model.validate(array)

    def encode(self, arrays: Sequence[np.ndarray]) -> list[Tensor]:
        """Return features [rows, hidden] of each clip."""
        return self._model.encode(arrays)

    def warm_up(self) -> None:
        """See `ModalityEncoder`."""
        self.encode([self._model.sample_array()])

    def close(self) -> None:
        """Do nothing: the encoder holds memory only."""
