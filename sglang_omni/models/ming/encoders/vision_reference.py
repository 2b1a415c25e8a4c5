"""The vision encoder in plain PyTorch: short and differentiable.

Modules and parameters have the checkpoint's tensor names. Parity tests and training use it;
serving does not.
"""

from collections.abc import Sequence
from pathlib import Path
from typing import TypeGuard

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from sglang_omni.models.ming.config import EncoderConfig, VisionConfig, read_encoder_config
from sglang_omni.models.ming.encoders.grid import (
    Grid,
    compute_patch_positions,
    compute_rotary_angles,
    interpolate_positions,
)
from sglang_omni.models.ming.encoders.rotary import apply_rotary
from sglang_omni.models.ming.encoders.tensors import (
    DEEPSTACK_PREFIX,
    VISION_PREFIXES,
    strip_encoder_prefix,
)
from sglang_omni.models.weights import TensorFolder, load_strict

NORM_EPS = 1e-6


class VisionReferenceAttention(nn.Module):
    """Full attention with biases, one frame at a time."""

    def __init__(self, config: VisionConfig) -> None:
        super().__init__()
        self.heads = config.num_heads
        self.qkv = nn.Linear(config.hidden_size, 3 * config.hidden_size)
        self.proj = nn.Linear(config.hidden_size, config.hidden_size)

    def forward(self, x: Tensor, angles: Tensor, lengths: Sequence[int]) -> Tensor:
        """Return [patches, hidden] of x [patches, hidden].

        Args:
            x: The patches of all frames.
            angles: Rotary angles [patches, head_dim / 2].
            lengths: The number of patches of each frame.
        """
        q, k, v = self.qkv(x).unflatten(-1, (3, self.heads, -1)).unbind(1)
        q, k = (apply_rotary(part, angles.cos(), angles.sin()) for part in (q, k))
        frames = zip(*(part.split(list(lengths)) for part in (q, k, v)), strict=True)
        out = [F.scaled_dot_product_attention(*(y.transpose(0, 1) for y in f)) for f in frames]
        return self.proj(torch.cat([y.transpose(0, 1).flatten(1) for y in out]))


class VisionReferenceMLP(nn.Module):
    """Linear, GELU, linear."""

    def __init__(self, size: int, width: int, out: int, approximate: str) -> None:
        super().__init__()
        self.approximate = approximate
        self.linear_fc1 = nn.Linear(size, width)
        self.linear_fc2 = nn.Linear(width, out)

    def forward(self, x: Tensor) -> Tensor:
        """Return [rows, outputs] of x [rows, inputs]."""
        return self.linear_fc2(F.gelu(self.linear_fc1(x), approximate=self.approximate))


class VisionReferenceBlock(nn.Module):
    """One pre-norm block."""

    def __init__(self, config: VisionConfig) -> None:
        super().__init__()
        size = config.hidden_size
        self.norm1 = nn.LayerNorm(size, NORM_EPS)
        self.attn = VisionReferenceAttention(config)
        self.norm2 = nn.LayerNorm(size, NORM_EPS)
        self.mlp = VisionReferenceMLP(size, config.intermediate_size, size, "tanh")

    def forward(self, x: Tensor, angles: Tensor, lengths: Sequence[int]) -> Tensor:
        """Return [patches, hidden] of x; see `VisionReferenceAttention.forward`."""
        x = x + self.attn(self.norm1(x), angles, lengths)
        return x + self.mlp(self.norm2(x))


class VisionReferenceMerger(VisionReferenceMLP):
    """Concatenate the patches of a token and project them."""

    def __init__(self, config: VisionConfig) -> None:
        super().__init__(config.merged_size, config.merged_size, config.out_hidden_size, "none")
        self.norm = nn.LayerNorm(config.hidden_size, NORM_EPS)

    def forward(self, x: Tensor) -> Tensor:
        """Return [tokens, outputs] of x [patches, hidden], in merge order."""
        return super().forward(self.norm(x).view(-1, self.linear_fc1.in_features))


class VisionReferencePatchEmbedding(nn.Module):
    """The convolution of the checkpoint. Its kernel equals its stride, so it is a linear layer."""

    def __init__(self, config: VisionConfig) -> None:
        super().__init__()
        kernel = (config.temporal_patch_size, config.patch_size, config.patch_size)
        self.proj = nn.Conv3d(config.in_channels, config.hidden_size, kernel, kernel)

    def forward(self, patches: Tensor) -> Tensor:
        """Return [patches, hidden] of patches [patches, width]."""
        return F.linear(patches, self.proj.weight.flatten(1), self.proj.bias)


class VisionReferenceTransformer(nn.Module):
    """Patch embedding, positions, blocks and merger."""

    def __init__(self, config: VisionConfig) -> None:
        super().__init__()
        self.config = config
        self.patch_embed = VisionReferencePatchEmbedding(config)
        self.pos_embed = nn.Embedding(config.num_position_embeddings, config.hidden_size)
        self.blocks = nn.ModuleList(VisionReferenceBlock(config) for _ in range(config.depth))
        self.merger = VisionReferenceMerger(config)

    def forward(self, patches: Tensor, grids: Sequence[Grid]) -> Tensor:
        """Return merged tokens [patches / 4, out] of patches [patches, width] in merge order."""
        config = self.config
        frames = [grid for grid in grids for _ in range(grid.frames)]
        patch_positions = [compute_patch_positions(grid, config, patches.device) for grid in frames]
        positions = torch.cat(
            [interpolate_positions(self.pos_embed.weight, p) for p in patch_positions]
        )
        angles = torch.cat([compute_rotary_angles(p, config.head_dim) for p in patch_positions])
        x = self.patch_embed(patches) + positions
        for block in self.blocks:
            x = block(x, angles, [grid.frame_patches for grid in frames])
        return self.merger(x)


class VisionReference(nn.Module):
    """The vision transformer and its projector to the thinker."""

    def __init__(self, config: EncoderConfig) -> None:
        super().__init__()
        self.vision = VisionReferenceTransformer(config.vision)
        self.linear_proj = nn.Sequential(
            nn.Linear(config.vision.out_hidden_size, config.hidden_size),
            nn.GELU(),
            nn.Linear(config.hidden_size, config.hidden_size),
        )

    def forward(self, patches: Tensor, grids: Sequence[Grid]) -> Tensor:
        """Return unit-norm features [patches / 4, hidden] of patches [patches, width]."""
        return F.normalize(self.linear_proj(self.vision(patches, grids)), dim=-1)


def load_vision_reference(checkpoint: Path) -> VisionReference:
    """Load the vision encoder of a checkpoint in float32, strictly; raise `CheckpointError`."""
    model = VisionReference(read_encoder_config(checkpoint))
    folder = TensorFolder(checkpoint)
    name_pairs = ((strip_encoder_prefix(name), name) for name in folder)
    tensors = {stripped: folder[name] for stripped, name in name_pairs if _is_vision(stripped)}
    load_strict(model, tensors, ignore=lambda name: name.startswith(DEEPSTACK_PREFIX))
    return model.eval()


def _is_vision(name: str | None) -> TypeGuard[str]:
    return name is not None and name.startswith(VISION_PREFIXES)
