"""The lane of pictures: one rank of the vision encoder, and the lane that leads the others."""

from collections.abc import Sequence

import numpy as np
import torch
from torch import Tensor

from sglang_omni.encoder.contract import EncoderSettings
from sglang_omni.encoder.graphs import BlockGraphs
from sglang_omni.encoder.lane import Load
from sglang_omni.encoder.ranks import Followers
from sglang_omni.engine.ports import rendezvous_port
from sglang_omni.engine.shared import Layout
from sglang_omni.errors import ConfigError, InvalidRequest
from sglang_omni.models.ming.config import VisionConfig, read_encoder_config
from sglang_omni.models.ming.encoders.attention import default_backend, load_attention
from sglang_omni.models.ming.encoders.grid import grid_of, tokens
from sglang_omni.models.ming.encoders.linears import Linears, PlainLinears
from sglang_omni.models.ming.encoders.pixels import patchify
from sglang_omni.models.ming.encoders.vision import load_vision


class PictureRank:
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
        attention = load_attention(default_backend(self.device, dtype, head_dim))
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
        grids = [grid_of(array.shape, self.config) for array in arrays]
        pictures = (torch.from_numpy(array).to(self.device) for array in arrays)
        patches = torch.cat([patchify(picture, self.config) for picture in pictures])
        inputs = self._encoder.vision.embed(patches, grids)
        rows = self._graphs(inputs) if self._graphs else self._encoder.encode(inputs)
        return list(rows.split([tokens(grid, self.config) for grid in grids]))

    @torch.inference_mode()
    def _capture(self, settings: EncoderSettings) -> BlockGraphs | None:
        """Graphs on a GPU, for one rank and a capturable kernel; NCCL stays out of graphs."""
        attention = self._encoder.attention
        wanted = settings.graphs and settings.tp_size == 1 and attention.capturable
        return BlockGraphs(self._encoder) if wanted and self.device.type == "cuda" else None


class PictureLane:
    """The vision encoder of a checkpoint on one or several ranks. Costs are patches."""

    def __init__(self, settings: EncoderSettings) -> None:
        """Start the other ranks and load. Raises `CheckpointError` and `ConfigError`."""
        check_split(read_encoder_config(settings.checkpoint).vision, settings.tp_size)
        self.budget = float(settings.max_patches)
        port = rendezvous_port()
        self._followers = Followers(settings, port)
        self._rank = PictureRank(settings, 0, port)
        ranks = f", {settings.tp_size} ranks" if settings.tp_size > 1 else ""
        self.about = self._rank.about + ranks

    def weigh(self, layout: Layout) -> Load:
        """Check that the array is frames in uint8 with sides that can be encoded."""
        if np.dtype(layout.dtype) != np.uint8:
            raise InvalidRequest(f"frames are uint8, not {layout.dtype}")
        grid = grid_of(layout.shape, self._rank.config)
        counts = {"images": 1, "frames": layout.shape[0], "patches": grid.patches}
        return Load(grid.patches, counts)

    def inspect(self, array: np.ndarray) -> None:
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


def choose_linears(
    settings: EncoderSettings, rank: int, port: int, device: torch.device
) -> Linears:
    """SGLang's layers, in the group of all ranks; a single rank without a card needs neither."""
    if not settings.uses_sglang:
        return PlainLinears()
    from sglang_omni.encoder.parallel import join_group
    from sglang_omni.models.ming.encoders.parallel_linears import ParallelLinears

    join_group(rank, settings.tp_size, port, device)
    return ParallelLinears()


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
