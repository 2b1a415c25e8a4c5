"""The vision encoder as a `ModalityEncoder`: rank 0, which drives the other ranks."""

from collections.abc import Sequence

import numpy as np
from torch import Tensor

from sglang_omni.engines.encoder.contract import EncoderSettings
from sglang_omni.engines.encoder.modality_encoder import Cost
from sglang_omni.engines.encoder.tp_workers import TPWorkers
from sglang_omni.engines.encoder.vision_rank import VisionRank
from sglang_omni.engines.runtime.ports import find_rendezvous_port
from sglang_omni.engines.runtime.shared_array import Layout
from sglang_omni.models.ming.config import VisionConfig, read_encoder_config
from sglang_omni.models.ming.encoders.grid import grid_of
from sglang_omni.protocol.errors import ConfigError, InvalidRequest


class VisionModality:
    """The vision encoder of a checkpoint on one or several ranks. Costs are in patches."""

    def __init__(self, settings: EncoderSettings) -> None:
        """Start the other ranks and load the encoder.

        Raises:
            CheckpointError: The checkpoint is incomplete.
            ConfigError: The encoder cannot be split over the ranks.
        """
        validate_tp_size(read_encoder_config(settings.checkpoint).vision, settings.tp_size)
        self.budget = float(settings.max_patches)
        port = find_rendezvous_port()
        self._tp_workers = TPWorkers(settings, port)
        self._rank = VisionRank(settings, 0, port)
        ranks = f", {settings.tp_size} ranks" if settings.tp_size > 1 else ""
        self.description = self._rank.description + ranks

    def estimate_cost(self, layout: Layout) -> Cost:
        """Check that the array is uint8 frames of a size that can be encoded."""
        if np.dtype(layout.dtype) != np.uint8:
            raise InvalidRequest(f"frames must be uint8, not {layout.dtype}")
        grid = grid_of(layout.shape, self._rank.config)
        counts = {"images": 1, "frames": layout.shape[0], "patches": grid.patches}
        # Attention is limited to a time step, which is two frames of a video.
        return Cost(grid.patches, counts, grid.frames)

    def validate(self, array: np.ndarray) -> None:
        """Do nothing: all uint8 values are valid."""

    def encode(self, arrays: Sequence[np.ndarray]) -> list[Tensor]:
        """Return features [tokens, hidden] of each image or video, encoded by all ranks."""
        self._tp_workers.send(arrays)
        return self._rank.encode(arrays)

    def warm_up(self) -> None:
        """Encode a black image of four tokens."""
        side = 2 * self._rank.config.patch_size * self._rank.config.spatial_merge_size
        self.encode([np.zeros((1, side, side, 3), np.uint8)])

    def close(self) -> None:
        """End the other ranks."""
        self._tp_workers.close()


def validate_tp_size(config: VisionConfig, ranks: int) -> None:
    """Check that the encoder can be split over the ranks.

    Raises:
        ConfigError: The number of heads or a size is not divisible by the number of ranks.
    """
    sizes = {
        "heads": config.num_heads,
        "intermediate size": config.intermediate_size,
        "merged size": config.merged_size,
    }
    for name, size in sizes.items():
        if size % ranks:
            raise ConfigError(
                f"the vision encoder's {name} {size} is not divisible by {ranks} ranks"
            )
