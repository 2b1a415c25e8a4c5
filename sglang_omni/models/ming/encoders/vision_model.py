"""Ming's vision encoder, or one rank of it, as a `ModalityModel`."""

from collections.abc import Sequence
from pathlib import Path

import numpy as np
import torch
from torch import Tensor

from sglang_omni.models.encoder import Cost
from sglang_omni.models.ming.config import VisionConfig, read_encoder_config
from sglang_omni.models.ming.encoders.attention import load_attention, select_backend
from sglang_omni.models.ming.encoders.graphs import BlockGraphs
from sglang_omni.models.ming.encoders.grid import compute_grid, count_tokens
from sglang_omni.models.ming.encoders.linears import Linears, PlainLinears
from sglang_omni.models.ming.encoders.pixels import patchify
from sglang_omni.models.ming.encoders.vision import load_vision
from sglang_omni.protocol.errors import ConfigError, InvalidRequest
from sglang_omni.system.progress import report_progress


class MingVisionModel:
    """This process's part of the vision encoder. Costs are in patches."""

    def __init__(
        self, checkpoint: Path, device: str, dtype: str, parallel: bool, graphs: bool
    ) -> None:
        """Load the encoder.

        Args:
            checkpoint: Folder of the checkpoint.
            device: Device, with its index on a GPU.
            dtype: Name of the dtype.
            parallel: Whether to use SGLang's layers, in the tensor-parallel group of this process.
            graphs: Whether to capture CUDA graphs on a GPU.

        Raises:
            CheckpointError: The checkpoint is incomplete.
        """
        self.device, torch_dtype = torch.device(device), getattr(torch, dtype)
        head_dim = read_encoder_config(checkpoint).vision.head_dim
        attention = load_attention(select_backend(self.device, torch_dtype, head_dim))
        linears = create_linears(parallel)
        self._encoder = load_vision(checkpoint, attention, linears, self.device, torch_dtype)
        self._graphs = self._capture() if graphs else None
        kind = "CUDA graphs" if self._graphs else "no graphs"
        self.description = f"image encoder on {self.device}: attention {attention.name}, {kind}"

    @property
    def config(self) -> VisionConfig:
        """Return the encoder's configuration."""
        return self._encoder.config.vision

    def estimate_cost(self, shape: tuple[int, ...], dtype: str) -> Cost:
        """Check that the array is uint8 frames of a size that can be encoded."""
        if np.dtype(dtype) != np.uint8:
            raise InvalidRequest(f"frames must be uint8, not {dtype}")
        grid = compute_grid(shape, self.config)
        counts = {"images": 1, "frames": shape[0], "patches": grid.patches}
        # Attention is limited to a time step, which is two frames of a video.
        return Cost(grid.patches, counts, grid.frames)

    def validate(self, array: np.ndarray) -> None:
        """Do nothing: all uint8 values are valid."""

    @torch.inference_mode()
    def encode(self, arrays: Sequence[np.ndarray]) -> list[Tensor]:
        """Return features [tokens, hidden] of each uint8 array [frames, height, width, 3]."""
        grids = [compute_grid(array.shape, self.config) for array in arrays]
        frames = (torch.from_numpy(array).to(self.device) for array in arrays)
        # Nothing keeps the patches: in float32 they would add a fifth to the memory of a pass.
        inputs = self._encoder.vision.embed(
            torch.cat([patchify(pixels, self.config) for pixels in frames]), grids
        )
        rows = self._graphs(inputs) if self._graphs else self._encoder.encode(inputs)
        return list(rows.split([count_tokens(grid, self.config) for grid in grids]))

    def sample_array(self) -> np.ndarray:
        """Return a black image of four tokens."""
        side = 2 * self.config.patch_size * self.config.spatial_merge_size
        return np.zeros((1, side, side, 3), np.uint8)

    @torch.inference_mode()
    def _capture(self) -> BlockGraphs | None:
        can_capture = self.device.type == "cuda" and self._encoder.attention.is_capturable
        if not can_capture:
            return None
        report_progress("capturing the image encoder's graphs")
        return BlockGraphs(self._encoder)


def create_linears(parallel: bool) -> Linears:
    """Return SGLang's layers in the group of all ranks, or plain layers for one rank."""
    if not parallel:
        return PlainLinears()
    from sglang_omni.models.ming.encoders.parallel_linears import ParallelLinears

    return ParallelLinears()


def check_ranks(checkpoint: Path, ranks: int) -> None:
    """Check that the encoder can be split over the ranks.

    Raises:
        CheckpointError: The configuration is missing or malformed.
        ConfigError: The number of heads or a size is not divisible by the number of ranks.
    """
    config = read_encoder_config(checkpoint).vision
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
