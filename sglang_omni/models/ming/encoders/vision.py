"""The vision encoder for serving, on SGLang's parallel layers or on plain ones.

It sets up no parallel state: it is built under that of the process, in an encoder process or
within SGLang's scheduler as a part of the thinker.
"""

import logging
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from sglang_omni.models.ming.config import EncoderConfig, VisionConfig, read_encoder_config
from sglang_omni.models.ming.encoders.attention import SegmentAttention, Segments
from sglang_omni.models.ming.encoders.grid import (
    Grid,
    compute_patch_positions,
    compute_rotary_angles,
    interpolate_positions,
)
from sglang_omni.models.ming.encoders.linears import Linears
from sglang_omni.models.ming.encoders.loading import build_vision_filler, fill_from_checkpoint
from sglang_omni.models.ming.encoders.rotary import RotateQKV, select_rotary_kernel
from sglang_omni.models.weights import use_device_and_dtype

LOGGER = logging.getLogger(__name__)

NORM_EPS = 1e-6


@dataclass(frozen=True)
class BlockInputs:
    """Inputs of the blocks.

    `hidden` [patches, hidden], rotary `cos` and `sin` float32 [patches, head_dim / 2], and the
    frames as `segments`.
    """

    hidden: Tensor
    cos: Tensor
    sin: Tensor
    segments: Segments


@dataclass(frozen=True)
class Kernels:
    """The kernels that all blocks use."""

    attention: SegmentAttention
    rotate: RotateQKV


def add_prefix(name: str, prefix: str) -> str:
    """Return the full name of the submodule `name` of the module `prefix`."""
    return f"{prefix}.{name}" if prefix else name


class VisionAttention(nn.Module):
    """Full attention within each frame, heads split over the tensor-parallel ranks."""

    def __init__(
        self,
        config: VisionConfig,
        kernels: Kernels,
        linears: Linears,
        prefix: str,
    ) -> None:
        super().__init__()
        self.kernels, self.head_dim = kernels, config.head_dim
        self.qkv = linears.build_qkv(
            config.hidden_size, config.num_heads, config.head_dim, add_prefix("qkv", prefix)
        )
        self.proj = linears.build_row(
            config.hidden_size, config.hidden_size, add_prefix("proj", prefix)
        )

    def forward(self, x: Tensor, inputs: BlockInputs) -> Tensor:
        """Return [patches, hidden] of x [patches, hidden]."""
        qkv, _ = self.qkv(x)
        heads = qkv.unflatten(-1, (3, -1, self.head_dim))
        q, k, v = self.kernels.rotate(heads, inputs.cos, inputs.sin)
        out = self.kernels.attention.attend(q, k, v, inputs.segments)
        return self.proj(out.flatten(1))[0]


class VisionMLP(nn.Module):
    """Linear, GELU, linear; the width is split over the ranks."""

    def __init__(
        self,
        sizes: tuple[int, int, int],
        approximate: str,
        linears: Linears,
        prefix: str,
    ) -> None:
        super().__init__()
        size, width, out = sizes
        self.approximate = approximate
        self.linear_fc1 = linears.build_column(size, width, add_prefix("linear_fc1", prefix))
        self.linear_fc2 = linears.build_row(width, out, add_prefix("linear_fc2", prefix))

    def forward(self, x: Tensor) -> Tensor:
        """Return [rows, outputs] of x [rows, inputs]."""
        hidden, _ = self.linear_fc1(x)
        return self.linear_fc2(F.gelu(hidden, approximate=self.approximate))[0]


class VisionBlock(nn.Module):
    """One pre-norm transformer block."""

    def __init__(
        self,
        config: VisionConfig,
        kernels: Kernels,
        linears: Linears,
        prefix: str,
    ) -> None:
        super().__init__()
        size = config.hidden_size
        attention, mlp = add_prefix("attn", prefix), add_prefix("mlp", prefix)
        self.norm1 = nn.LayerNorm(size, NORM_EPS)
        self.attn = VisionAttention(config, kernels, linears, attention)
        self.norm2 = nn.LayerNorm(size, NORM_EPS)
        self.mlp = VisionMLP((size, config.intermediate_size, size), "tanh", linears, mlp)

    def forward(self, x: Tensor, inputs: BlockInputs) -> Tensor:
        """Return [patches, hidden] of x [patches, hidden]."""
        x = x + self.attn(self.norm1(x), inputs)
        return x + self.mlp(self.norm2(x))


class VisionMerger(VisionMLP):
    """Concatenate the patches of a token and project them."""

    def __init__(self, config: VisionConfig, linears: Linears, prefix: str) -> None:
        merged = config.merged_size
        super().__init__((merged, merged, config.out_hidden_size), "none", linears, prefix)
        self.merged_size = merged
        self.norm = nn.LayerNorm(config.hidden_size, NORM_EPS)

    def forward(self, x: Tensor) -> Tensor:
        """Return [tokens, outputs] of x [patches, hidden], in merge order."""
        return super().forward(self.norm(x).view(-1, self.merged_size))


class VisionPatchEmbedding(nn.Module):
    """The convolution of the checkpoint as an equivalent linear layer, unsplit on every rank."""

    def __init__(self, config: VisionConfig) -> None:
        super().__init__()
        self.proj = nn.Linear(config.patch_width, config.hidden_size)

    def forward(self, patches: Tensor) -> Tensor:
        """Return [patches, hidden] of patches [patches, width], in the dtype of the weights."""
        return self.proj(patches.to(self.proj.weight.dtype))


class VisionTransformer(nn.Module):
    """Patch embedding, positions, blocks and merger."""

    def __init__(
        self,
        config: VisionConfig,
        kernels: Kernels,
        linears: Linears,
        prefix: str,
    ) -> None:
        super().__init__()
        self.config = config
        self.patch_embed = VisionPatchEmbedding(config)
        self.pos_embed = nn.Embedding(config.num_position_embeddings, config.hidden_size)
        self.blocks = nn.ModuleList(
            VisionBlock(config, kernels, linears, add_prefix(f"blocks.{index}", prefix))
            for index in range(config.depth)
        )
        self.merger = VisionMerger(config, linears, add_prefix("merger", prefix))

    def embed(self, patches: Tensor, grids: Sequence[Grid]) -> BlockInputs:
        """Return the input of block 0 for patches [patches, width] of several images."""
        config, table = self.config, self.pos_embed.weight
        positions, angles, lengths = [], [], []
        for grid in grids:
            patch_positions = compute_patch_positions(grid, config, patches.device)
            positions.append(interpolate_positions(table, patch_positions).repeat(grid.frames, 1))
            angles.append(
                compute_rotary_angles(patch_positions, config.head_dim).repeat(grid.frames, 1)
            )
            lengths += [grid.frame_patches] * grid.frames
        hidden, angle = self.patch_embed(patches) + torch.cat(positions), torch.cat(angles)
        return BlockInputs(
            hidden, angle.cos(), angle.sin(), Segments.from_lengths(lengths, patches.device)
        )

    def forward(self, inputs: BlockInputs) -> Tensor:
        """Run all blocks and the merger; return merged tokens [patches / 4, out]."""
        x = inputs.hidden
        for block in self.blocks:
            x = block(x, inputs)
        return self.merger(x)


class VisionProjector(nn.ModuleDict):
    """Two linear layers with a GELU between them; index 1 of the checkpoint is the GELU."""

    def __init__(
        self,
        size: int,
        hidden: int,
        linears: Linears,
        prefix: str = "",
    ) -> None:
        first, second = add_prefix("0", prefix), add_prefix("2", prefix)
        super().__init__(
            {
                "0": linears.build_column(size, hidden, first),
                "2": linears.build_row(hidden, hidden, second),
            }
        )

    def forward(self, x: Tensor) -> Tensor:
        """Return [tokens, hidden] of x [tokens, width]."""
        return self["2"](F.gelu(self["0"](x)[0]))[0]


class VisionEncoder(nn.Module):
    """The vision transformer and its projector, under the tensor names of the checkpoint.

    Build it on the device and with the dtype it runs in (`weights.use_device_and_dtype`), under an
    initialised tensor-parallel group if `linears` are SGLang's, and fill it with
    `loading.build_vision_filler`.
    """

    def __init__(
        self,
        config: EncoderConfig,
        attention: SegmentAttention,
        linears: Linears,
        device: torch.device,
        prefix: str = "",
    ) -> None:
        super().__init__()
        self.config, self.attention, vision = config, attention, config.vision
        kernels = Kernels(attention, select_rotary_kernel(device))
        tower, projector = add_prefix("vision", prefix), add_prefix("linear_proj", prefix)
        self.vision = VisionTransformer(vision, kernels, linears, tower)
        self.linear_proj = VisionProjector(
            vision.out_hidden_size, config.hidden_size, linears, projector
        )

    def forward(self, patches: Tensor, grids: Sequence[Grid]) -> Tensor:
        """Return unit-norm features [patches / 4, hidden] of patches [patches, width].

        Patches are in merge order. Images follow each other in the order of `grids` and do not
        influence each other.
        """
        return self.encode(self.vision.embed(patches, grids))

    def encode(self, inputs: BlockInputs) -> Tensor:
        """Run the part that CUDA graphs can capture: blocks, merger, projector, normalisation."""
        projected = self.linear_proj(self.vision(inputs))
        return F.normalize(projected.float(), dim=-1).to(projected.dtype)


def load_vision(
    checkpoint: Path,
    attention: SegmentAttention,
    linears: Linears,
    device: torch.device,
    dtype: torch.dtype,
) -> VisionEncoder:
    """Load this rank's part of a checkpoint's vision encoder, or raise `CheckpointError`."""
    config = read_encoder_config(checkpoint)
    with use_device_and_dtype(device, dtype):
        encoder = VisionEncoder(config, attention, linears, device)
    report = fill_from_checkpoint(checkpoint, build_vision_filler(encoder, config))
    LOGGER.info("vision: loaded %d tensors, ignored %d", report.loaded, len(report.ignored))
    return encoder.eval().requires_grad_(False)
