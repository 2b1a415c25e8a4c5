"""A rank of the vision encoder.

`python -m sglang_omni.engines.encoder.vision_rank PIPE_FD PARENT_PID` is one of those that follow
the first, which has it as `VisionRank`.
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
from sglang_omni.engines.encoder.threads import use_threads
from sglang_omni.engines.encoder.tp_workers import Frames
from sglang_omni.engines.runtime.log_records import log_to_server
from sglang_omni.engines.runtime.orphan_reaper import die_with_parent
from sglang_omni.models.ming.config import VisionConfig, read_encoder_config
from sglang_omni.models.ming.encoders.attention import load_attention, select_backend
from sglang_omni.models.ming.encoders.grid import compute_grid, count_tokens
from sglang_omni.models.ming.encoders.linears import Linears, PlainLinears
from sglang_omni.models.ming.encoders.pixels import patchify
from sglang_omni.models.ming.encoders.vision import load_vision


class VisionRank:
    """This rank's part of the vision encoder. All ranks encode the same pictures together."""

    def __init__(self, settings: EncoderSettings, rank: int, port: int) -> None:
        """Meet the other ranks at the loopback `port` and load. Raises `CheckpointError`."""
        self.device = torch.device(settings.device)
        if self.device.type == "cuda":
            self.device = torch.device("cuda", rank)
            torch.cuda.set_device(self.device)
        linears = choose_linears(settings, rank, port, self.device)
        dtype = getattr(torch, settings.dtype)
        head_dim = read_encoder_config(settings.checkpoint).vision.head_dim
        attention = load_attention(select_backend(self.device, dtype, head_dim))
        self._encoder = load_vision(settings.checkpoint, attention, linears, self.device, dtype)
        self._graphs = self._capture(settings)
        kind = "CUDA graphs" if self._graphs else "no graphs"
        self.about = f"image encoder on {self.device}: attention {attention.name}, {kind}"

    @property
    def config(self) -> VisionConfig:
        """The checkpoint's configuration."""
        return self._encoder.config.vision

    @torch.inference_mode()
    def encode(self, arrays: Sequence[np.ndarray]) -> list[Tensor]:
        """Features [tokens, hidden] of uint8 frames [frames, height, width, 3] each."""
        grids = [compute_grid(array.shape, self.config) for array in arrays]
        pictures = (torch.from_numpy(array).to(self.device) for array in arrays)
        patches = torch.cat([patchify(picture, self.config) for picture in pictures])
        inputs = self._encoder.vision.embed(patches, grids)
        rows = self._graphs(inputs) if self._graphs else self._encoder.encode(inputs)
        return list(rows.split([count_tokens(grid, self.config) for grid in grids]))

    @torch.inference_mode()
    def _capture(self, settings: EncoderSettings) -> BlockGraphs | None:
        """Graphs on a GPU, for one rank and a capturable kernel; NCCL stays out of graphs."""
        attention = self._encoder.attention
        wanted = settings.graphs and settings.tp_size == 1 and attention.is_capturable
        return BlockGraphs(self._encoder) if wanted and self.device.type == "cuda" else None


def choose_linears(
    settings: EncoderSettings, rank: int, port: int, device: torch.device
) -> Linears:
    """SGLang's layers, in the group of all ranks; a single rank without a card needs neither."""
    if not settings.uses_sglang:
        return PlainLinears()
    from sglang_omni.engines.encoder.parallel import join_group
    from sglang_omni.models.ming.encoders.parallel_linears import ParallelLinears

    join_group(rank, settings.tp_size, port, device)
    return ParallelLinears()


def follow(orders: Connection) -> None:
    """Be the rank that the first order says, and encode what every further order names."""
    settings, rank, port = orders.recv()
    use_threads(settings)
    encoder = VisionRank(settings, rank, port)
    while True:
        try:
            frames: Frames = orders.recv()
        except EOFError:
            return
        encoder.encode([shared.read(layout) for shared, layout in frames])


if __name__ == "__main__":
    logging.basicConfig(level=logging.INFO, format="%(message)s")
    log_to_server()
    die_with_parent(int(sys.argv[2]))
    follow(Connection(int(sys.argv[1])))
