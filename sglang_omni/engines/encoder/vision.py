"""The lane of pictures: this process's rank of the vision encoder, which leads the others."""

from collections.abc import Sequence

import numpy as np
from torch import Tensor

from sglang_omni.engines.encoder.contract import EncoderSettings
from sglang_omni.engines.encoder.modality_encoder import Cost
from sglang_omni.engines.encoder.tp_workers import TPWorkers
from sglang_omni.engines.encoder.vision_rank import VisionRank
from sglang_omni.engines.runtime.ports import rendezvous_port
from sglang_omni.engines.runtime.shared_array import Layout
from sglang_omni.models.ming.config import VisionConfig, read_encoder_config
from sglang_omni.models.ming.encoders.grid import compute_grid
from sglang_omni.protocol.errors import ConfigError, InvalidRequest


class VisionModality:
    """The vision encoder of a checkpoint on one or several ranks. Costs are patches."""

    def __init__(self, settings: EncoderSettings) -> None:
        """Start the other ranks and load. Raises `CheckpointError` and `ConfigError`."""
        check_split(read_encoder_config(settings.checkpoint).vision, settings.tp_size)
        self.budget = float(settings.max_patches)
        port = rendezvous_port()
        self._followers = TPWorkers(settings, port)
        self._rank = VisionRank(settings, 0, port)
        ranks = f", {settings.tp_size} ranks" if settings.tp_size > 1 else ""
        self.about = self._rank.about + ranks

    def estimate_cost(self, layout: Layout) -> Cost:
        """Check that the array is frames in uint8 with sides that can be encoded."""
        if np.dtype(layout.dtype) != np.uint8:
            raise InvalidRequest(f"frames are uint8, not {layout.dtype}")
        grid = compute_grid(layout.shape, self._rank.config)
        counts = {"images": 1, "frames": layout.shape[0], "patches": grid.patches}
        # Attention stays within a step of time, which is two frames of a video.
        return Cost(grid.patches, counts, grid.frames)

    def validate(self, array: np.ndarray) -> None:
        """Any bytes are a picture."""

    def encode(self, arrays: Sequence[np.ndarray]) -> list[Tensor]:
        """Features of each picture, by all ranks together."""
        self._followers.send(arrays)
        return self._rank.encode(arrays)

    def warm_up(self) -> None:
        """Encode a black picture of four tokens."""
        side = 2 * self._rank.config.patch_size * self._rank.config.spatial_merge_size
        self.encode([np.zeros((1, side, side, 3), np.uint8)])

    def close(self) -> None:
        """Let the other ranks go."""
        self._followers.close()


def check_split(config: VisionConfig, ranks: int) -> None:
    """Raise `ConfigError` if heads or widths do not divide among the ranks."""
    sizes = {
        "heads": config.num_heads,
        "intermediate size": config.intermediate_size,
        "merged size": config.merged_size,
    }
    for what, size in sizes.items():
        if size % ranks:
            raise ConfigError(
                f"the vision encoder's {what} {size} does not divide by {ranks} ranks"
            )
