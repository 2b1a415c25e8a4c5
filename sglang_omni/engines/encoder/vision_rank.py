"""A rank of the vision encoder.

`python -m sglang_omni.engines.encoder.vision_rank PIPE_FD PARENT_PID` runs rank 1 or up. Rank 0
uses `VisionRank` in the engine process.
"""

import logging
import sys
from collections.abc import Sequence
from multiprocessing.connection import Connection

import numpy as np
import torch
from torch import Tensor

from sglang_omni.engines.encoder.contract import EncoderSettings
from sglang_omni.engines.encoder.graphs import BlockGraphs
from sglang_omni.engines.encoder.threads import limit_threads
from sglang_omni.engines.encoder.tp_workers import Frames
from sglang_omni.engines.runtime.log_records import log_to_server
from sglang_omni.engines.runtime.orphan_reaper import die_with_parent
from sglang_omni.models.ming.config import VisionConfig, read_encoder_config
from sglang_omni.models.ming.encoders.attention import default_backend, load_attention
from sglang_omni.models.ming.encoders.grid import grid_of, tokens
from sglang_omni.models.ming.encoders.linears import Linears, PlainLinears
from sglang_omni.models.ming.encoders.pixels import patchify
from sglang_omni.models.ming.encoders.vision import load_vision


class VisionRank:
    """This rank's part of the vision encoder. All ranks encode the same arrays together."""

    def __init__(self, settings: EncoderSettings, rank: int, port: int) -> None:
        """Join the other ranks at the loopback `port` and load the encoder.

        Raises:
            CheckpointError: The checkpoint is incomplete.
        """
        self.device = torch.device(settings.device)
        if self.device.type == "cuda":
            self.device = torch.device("cuda", rank)
            torch.cuda.set_device(self.device)
        linears = create_linears(settings, rank, port, self.device)
        dtype = getattr(torch, settings.dtype)
        head_dim = read_encoder_config(settings.checkpoint).vision.head_dim
        attention = load_attention(default_backend(self.device, dtype, head_dim))
        self._encoder = load_vision(settings.checkpoint, attention, linears, self.device, dtype)
        self._graphs = self._capture(settings)
        kind = "CUDA graphs" if self._graphs else "no graphs"
        self.description = f"image encoder on {self.device}: attention {attention.name}, {kind}"

    @property
    def config(self) -> VisionConfig:
        """Return the encoder's configuration."""
        return self._encoder.config.vision

    @torch.inference_mode()
    def encode(self, arrays: Sequence[np.ndarray]) -> list[Tensor]:
        """Return features [tokens, hidden] of each uint8 array [frames, height, width, 3]."""
        grids = [grid_of(array.shape, self.config) for array in arrays]
        frames = (torch.from_numpy(array).to(self.device) for array in arrays)
        patches = torch.cat([patchify(pixels, self.config) for pixels in frames])
        inputs = self._encoder.vision.embed(patches, grids)
        rows = self._graphs(inputs) if self._graphs else self._encoder.encode(inputs)
        return list(rows.split([tokens(grid, self.config) for grid in grids]))

    @torch.inference_mode()
    def _capture(self, settings: EncoderSettings) -> BlockGraphs | None:
        """Capture CUDA graphs for a single rank on a GPU. NCCL calls are not captured."""
        attention = self._encoder.attention
        is_enabled = settings.graphs and settings.tp_size == 1 and attention.capturable
        return BlockGraphs(self._encoder) if is_enabled and self.device.type == "cuda" else None


def create_linears(
    settings: EncoderSettings, rank: int, port: int, device: torch.device
) -> Linears:
    """Return SGLang's layers in the group of all ranks, or plain layers for one rank on a CPU."""
    if not settings.uses_sglang:
        return PlainLinears()
    from sglang_omni.engines.encoder.parallel import join_group
    from sglang_omni.models.ming.encoders.parallel_linears import ParallelLinears

    join_group(rank, settings.tp_size, port, device)
    return ParallelLinears()


def run_follower(pipe: Connection) -> None:
    """Start the rank of the first message, and encode the arrays of every further message."""
    settings, rank, port = pipe.recv()
    limit_threads(settings)
    encoder = VisionRank(settings, rank, port)
    while True:
        try:
            frames: Frames = pipe.recv()
        except EOFError:
            return
        encoder.encode([shared.read(layout) for shared, layout in frames])


if __name__ == "__main__":
    logging.basicConfig(level=logging.INFO, format="%(message)s")
    log_to_server()
    die_with_parent(int(sys.argv[2]))
    run_follower(Connection(int(sys.argv[1])))
